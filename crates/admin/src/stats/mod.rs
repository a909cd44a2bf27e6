//! Statistics: one table of figures ([`table`]), the objects they belong to ([`row`]), and the forms they
//! take: CSV, typed lines and JSON ([`show`]), HTML ([`page`]).

pub mod clear;
mod html;
pub mod kept;
mod options;
pub mod page;
mod post;
pub mod protocols;
mod read;
pub mod resolvers;
pub mod row;
pub mod schema;
pub mod shm;
pub mod show;
pub mod table;
pub mod value;
