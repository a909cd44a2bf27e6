//! What backends are made of while a configuration runs (`add backend`): each `defaults` section with a name
//! is compiled as a backend of both modes, when names, variables and files are at hand as they never are
//! later. What there is to say about the section was said when proxies inherited from it, so here nothing is;
//! one that can't be a backend is none.

use std::sync::Arc;

use program::{Defaults, Mode, Proxy};
use syntax::{Diagnostics, Level};

use super::Assembly;
use crate::draft::{Draft, Kind};
use crate::names::Declared;

impl Assembly<'_> {
    pub(super) fn templates(&mut self, defaults: &[Draft]) -> Vec<Defaults> {
        let mut template = |d: &Draft| Defaults {
            name: d.name.clone(),
            mode: d.mode_said.then_some(d.mode),
            unfit: d.unfit.clone(),
            backends: [Mode::Tcp, Mode::Http].map(|mode| self.template(d, mode)),
        };
        defaults.iter().map(&mut template).collect()
    }

    fn template(&mut self, defaults: &Draft, mode: Mode) -> Option<Proxy> {
        let mut draft = defaults.inherit(Kind::Backend);
        // All its lines are inherited.
        (draft.name, draft.mode, draft.section) = (defaults.name.clone(), mode, u32::MAX);
        let workers = self.ground.world.workers;
        let index = self.declared.len();
        self.declared.push(Declared {
            name: draft.name.clone(),
            state: Arc::new(model::Proxy::new(&draft.name, 0, None, workers)),
            is_front: false,
            is_back: true,
            servers: Vec::new(),
            configured: Vec::new(),
            referenced: Default::default(),
            mirror: Default::default(),
            named: Default::default(),
            mode,
        });
        let mut unsaid = Diagnostics::default();
        let proxy = self.proxy(index, &draft, &[], &mut unsaid);
        self.declared.pop();
        (unsaid.count(Level::Alert) == 0).then_some(proxy)
    }
}
