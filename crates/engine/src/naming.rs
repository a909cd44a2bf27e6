//! Rules that wait for the address of a name.

use std::any::Any;
use std::net::IpAddr;
use std::rc::Rc;

use lang::action::{Fulfilled, Waiting};

use crate::Worker;

/// Begins to look for the address of a name.
pub fn find(worker: &Rc<Worker>, resolvers: u32, name: Box<str>, v4: bool) -> Waiting {
    let farm = worker.farm.clone();
    Box::pin(async move { Box::new(farm::names::find(&farm, resolvers, &name, v4).await) as Box<dyn Any> })
}

/// What came of it; nothing when the client left, or the time was over.
pub fn fulfilled(brought: Option<Box<dyn Any>>) -> Fulfilled {
    let found = brought.and_then(|found| found.downcast::<Option<IpAddr>>().ok());
    found.and_then(|ip| *ip).map_or(Fulfilled::Failed, Fulfilled::Address)
}
