//! The services that this program has.

use std::sync::Arc;

use engine::worker::service::Services;

/// What `use-service` and `stats uri` may lead to.
pub fn all() -> Services {
    vec![
        ("stats".into(), Arc::new(admin::stats::page::Stats)),
        ("prometheus-exporter".into(), Arc::new(admin::promex::Exporter)),
    ]
}
