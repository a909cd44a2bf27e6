//! All tables of this crate, put together: the top of its floors.

use crate::registry::Registry;

impl Registry {
    /// The entries of this crate.
    ///
    /// # Panics
    /// When a table is wrong (a signature that can't be read, a name twice): a defect of ours that every
    /// start would show, and that the tests find first.
    pub fn standard() -> Registry {
        let mut r = Registry::empty();
        for table in crate::fetch::TABLES {
            r.add_fetches(table);
        }
        r.add_fetches(crate::stick::fetches());
        r.add_converters(crate::stick::converters());
        for table in crate::conv::TABLES {
            r.add_converters(table);
        }
        for table in crate::act::TABLES {
            r.add_actions(table);
        }
        for table in crate::tag::TABLES {
            r.add_tags(table);
        }
        r.add_acls(crate::fetch::ACLS);
        r
    }
}
