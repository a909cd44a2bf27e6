//! Applications of FastCGI (manual, section 10).

use std::sync::Arc;

use crate::log::Target;

/// The application that a backend speaks to.
#[derive(Clone)]
pub struct Application {
    /// What it is, and its rules.
    pub app: Arc<lang::fcgi::App>,
    /// `log-stderr`.
    pub errors: Arc<[Target]>,
}
