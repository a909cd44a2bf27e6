//! A list whose elements come and go while it is read.
//!
//! Servers and backends are added and deleted while a configuration runs, and every request looks some up by
//! index. The elements that were there at the beginning are one slice, as fast as any. Those that come later
//! are counted: whoever looks one up gets a [`Held`], which keeps it for as long as it is held, and whoever
//! remembers an index keeps a [`Pin`] beside it. An element that was taken out is freed when nobody holds it
//! any more, and only then is its index given to another. So an index never means two things to anybody.
//!
//! A count that all threads change would cost each request some; so a thread that asks often ([`remember`])
//! keeps one count of each element for itself, and counts within the thread without atomics. All that it
//! shares with the others on the way of a request is one word, which changes with the list. When an element
//! was taken out each such thread has to be told to let go ([`Fleet::renew`]).

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ops::{Deref, Index};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Versions of all lists: no two are equal, so that what a thread remembers of one never passes for another.
static VERSIONS: AtomicU64 = AtomicU64::new(1);

/// Numbers of lists, under which threads remember them: those that are free, and the next one.
static NUMBERS: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));

thread_local! {
    static REMEMBERS: Cell<bool> = const { Cell::new(false) };
    static KNOWN: RefCell<Vec<Option<Rc<dyn Any>>>> = const { RefCell::new(Vec::new()) };
}

/// From now on this thread keeps counts of its own, and has to be told when elements are taken out.
pub fn remember() {
    REMEMBERS.set(true);
}

/// See the module.
pub struct Fleet<T: 'static> {
    first: Box<[T]>,
    number: usize,
    /// 0: nothing was ever added.
    version: AtomicU64,
    later: Mutex<Later<T>>,
}

// The box lets the element's memory go while somebody still may ask whether it lives.
type Shared<T> = Arc<Box<T>>;

struct Later<T> {
    /// By index, counted from the first that was added.
    berths: Vec<Berth<T>>,
    /// Those that are there, in the order in which they came.
    order: Vec<u32>,
}

struct Berth<T> {
    here: Option<Shared<T>>,
    /// Finds it as long as anybody holds it.
    last: Weak<Box<T>>,
}

/// What a thread remembers of a list.
struct Known<T> {
    version: u64,
    berths: Vec<Option<Rc<Shared<T>>>>,
    order: Vec<u32>,
}

/// An element, which stays what it is while this lives.
pub struct Held<'f, T: 'static>(Hold<'f, T>);

enum Hold<'f, T: 'static> {
    First(&'f T),
    Here(Rc<Shared<T>>),
    Shared(Shared<T>),
}

/// Keeps an element, and its index, for as long as it lives; `None` for those that are never taken out.
pub type Pin<T> = Option<Held<'static, T>>;

impl<T> Fleet<T> {
    /// A list of these elements.
    pub fn new(first: Vec<T>) -> Fleet<T> {
        let mut numbers = locked(&NUMBERS);
        let number = numbers.0.pop().unwrap_or_else(|| {
            numbers.1 += 1;
            numbers.1 - 1
        });
        let later = Mutex::new(Later { berths: Vec::new(), order: Vec::new() });
        Fleet { first: first.into(), number, version: AtomicU64::new(0), later }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.first.len() + if self.is_changed() { locked(&self.later).order.len() } else { 0 }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many were there at the beginning. They keep their indices and are never taken out.
    pub fn initial(&self) -> usize {
        self.first.len()
    }

    /// One of those that were there at the beginning.
    #[inline]
    pub fn configured(&self, at: usize) -> Option<&T> {
        self.first.get(at)
    }

    /// Those that were there at the beginning.
    pub fn beginning(&self) -> &[T] {
        &self.first
    }

    /// All indices in use are below this one.
    pub fn bound(&self) -> usize {
        self.first.len() + if self.is_changed() { locked(&self.later).berths.len() } else { 0 }
    }

    fn is_changed(&self) -> bool {
        self.version.load(Ordering::Acquire) != 0
    }

    /// The element at an index, also one that was taken out and that somebody still holds.
    #[inline]
    pub fn get(&self, at: usize) -> Option<Held<'_, T>> {
        match self.first.get(at) {
            Some(found) => Some(Held(Hold::First(found))),
            None => self.get_later(at - self.first.len()),
        }
    }

    #[cold]
    fn get_later(&self, at: usize) -> Option<Held<'_, T>> {
        if !self.is_changed() {
            return None;
        }
        if let Some(known) = self.known()
            && let Some(Some(found)) = known.berths.get(at)
        {
            return Some(Held(Hold::Here(found.clone())));
        }
        let later = locked(&self.later);
        Some(Held(Hold::Shared(later.berths.get(at)?.last.upgrade()?)))
    }

    /// Adds an element and says at which index.
    pub fn push(&self, element: T) -> usize {
        let mut later = locked(&self.later);
        let at = later.vacant();
        later.enter(at, element);
        self.changed();
        self.first.len() + at
    }

    /// An index that is free, and stays so until something is added.
    pub fn vacant(&self) -> usize {
        self.first.len() + locked(&self.later).vacant()
    }

    /// Adds an element at an index that [`Fleet::vacant`] told, of this list or of one that it goes along
    /// with. Whatever is there is taken out.
    pub fn put(&self, at: usize, element: T) {
        let Some(at) = at.checked_sub(self.first.len()) else { return };
        let mut later = locked(&self.later);
        later.order.retain(|other| *other as usize != at);
        later.enter(at, element);
        self.changed();
    }

    /// Takes out one of those that were added. It is gone when nobody holds it any more; threads that
    /// remember have to be told ([`Fleet::renew`]).
    pub fn remove(&self, at: usize) -> Option<Held<'static, T>> {
        let at = at.checked_sub(self.first.len())?;
        let mut later = locked(&self.later);
        let removed = later.berths.get_mut(at)?.here.take()?;
        later.order.retain(|other| *other as usize != at);
        self.changed();
        Some(Held(Hold::Shared(removed)))
    }

    /// Lets go of what this thread remembers and is no longer there.
    pub fn renew(&self) {
        if self.is_changed() {
            self.known();
        }
    }

    fn changed(&self) {
        self.version.store(VERSIONS.fetch_add(1, Ordering::Relaxed), Ordering::Release);
    }

    /// What this thread remembers, brought up to date.
    fn known(&self) -> Option<Rc<Known<T>>> {
        if !REMEMBERS.try_with(Cell::get).unwrap_or(false) {
            return None;
        }
        let of_thread = KNOWN.try_with(|all| all.borrow().get(self.number).cloned().flatten()).ok()?;
        let old = of_thread.and_then(|known| known.downcast::<Known<T>>().ok());
        match old {
            Some(known) if known.version == self.version.load(Ordering::Acquire) => Some(known),
            old => self.learn(old.as_deref()),
        }
    }

    fn learn(&self, old: Option<&Known<T>>) -> Option<Rc<Known<T>>> {
        let later = locked(&self.later);
        let version = self.version.load(Ordering::Acquire);
        let of_thread = |at: usize, shared: &Shared<T>| {
            let before = old.and_then(|known| known.berths.get(at)?.as_ref());
            before.filter(|b| Arc::ptr_eq(b, shared)).cloned().unwrap_or_else(|| Rc::new(shared.clone()))
        };
        let berths = later.berths.iter().enumerate().map(|(at, b)| b.here.as_ref().map(|s| of_thread(at, s)));
        let known = Rc::new(Known { version, berths: berths.collect(), order: later.order.clone() });
        drop(later);
        let kept = known.clone() as Rc<dyn Any>;
        let before = KNOWN.try_with(|all| {
            let mut all = all.borrow_mut();
            if all.len() <= self.number {
                all.resize(self.number + 1, None);
            }
            all.get_mut(self.number).and_then(|place| place.replace(kept))
        });
        // Elements that end with it may look at this memory.
        drop(before);
        Some(known)
    }

    /// The elements that were there at the beginning, taken out.
    pub fn into_vec(mut self) -> Vec<T> {
        std::mem::take(&mut self.first).into_vec()
    }

    /// All elements: those of the beginning, then the others in the order in which they came.
    pub fn iter(&self) -> Elements<'_, T> {
        Elements(self.numbered())
    }

    /// The same, with their indices.
    pub fn numbered(&self) -> Iter<'_, T> {
        let view = match (self.is_changed(), || self.known()) {
            (false, _) => View::None,
            (true, known) => match known() {
                Some(known) => View::Here(known),
                None => {
                    let later = locked(&self.later);
                    let of = |at: &u32| Some((*at, later.berths.get(*at as usize)?.here.clone()?));
                    View::Shared(later.order.iter().filter_map(of).collect())
                }
            },
        };
        let later = match &view {
            View::None => 0,
            View::Here(known) => known.order.len(),
            View::Shared(all) => all.len(),
        };
        Iter { first: &self.first, view, at: 0, end: self.first.len() + later }
    }
}

impl<T> Later<T> {
    fn vacant(&self) -> usize {
        let is_free = |b: &Berth<T>| b.here.is_none() && b.last.strong_count() == 0;
        self.berths.iter().position(is_free).unwrap_or(self.berths.len())
    }

    fn enter(&mut self, at: usize, element: T) {
        let element = Arc::new(Box::new(element));
        if self.berths.len() <= at {
            self.berths.resize_with(at + 1, || Berth { here: None, last: Weak::new() });
        }
        if let Some(berth) = self.berths.get_mut(at) {
            *berth = Berth { last: Arc::downgrade(&element), here: Some(element) };
            self.order.push(u32::try_from(at).unwrap_or(u32::MAX));
        }
    }
}

impl<T> Drop for Fleet<T> {
    fn drop(&mut self) {
        locked(&NUMBERS).0.push(self.number);
    }
}

fn locked<G>(mutex: &Mutex<G>) -> MutexGuard<'_, G> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'f, T> Held<'f, T> {
    /// Keeps the element without the list at hand.
    pub fn pin(&self) -> Pin<T> {
        match &self.0 {
            Hold::First(_) => None,
            Hold::Here(found) => Some(Held(Hold::Here(found.clone()))),
            Hold::Shared(found) => Some(Held(Hold::Shared(found.clone()))),
        }
    }

    /// An element that belongs to nobody's list.
    pub fn alone(element: &'f T) -> Held<'f, T> {
        Held(Hold::First(element))
    }

    /// An element of an element, which stands in a list of its own.
    pub fn then<U>(self, list: fn(&T) -> &Fleet<U>, at: usize) -> Option<Held<'f, U>> {
        match &self.0 {
            Hold::First(found) => list(found).get(at),
            // Lists of those that came later have nothing but what came later.
            Hold::Here(found) => list(found).get(at)?.pin(),
            Hold::Shared(found) => list(found).get(at)?.pin(),
        }
    }
}

impl<T: Send + Sync> Held<'static, T> {
    /// A token that keeps the element from any thread.
    pub fn token(&self) -> Option<impl Send + Sync + Clone + use<T>> {
        match &self.0 {
            Hold::First(_) => None,
            Hold::Here(found) => Some(Shared::clone(found)),
            Hold::Shared(found) => Some(found.clone()),
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Hold::First(found) => found,
            Hold::Here(found) => found,
            Hold::Shared(found) => found,
        }
    }
}

impl<T> Clone for Held<'_, T> {
    fn clone(&self) -> Self {
        Held(match &self.0 {
            Hold::First(found) => Hold::First(found),
            Hold::Here(found) => Hold::Here(found.clone()),
            Hold::Shared(found) => Hold::Shared(found.clone()),
        })
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

/// An element and its index.
pub type Numbered<'f, T> = (u32, Held<'f, T>);

enum View<T> {
    None,
    Here(Rc<Known<T>>),
    Shared(Rc<[(u32, Shared<T>)]>),
}

impl<T> Clone for View<T> {
    fn clone(&self) -> Self {
        match self {
            View::None => View::None,
            View::Here(known) => View::Here(known.clone()),
            View::Shared(all) => View::Shared(all.clone()),
        }
    }
}

/// The elements of a [`Fleet`] that were there when it was made, with their indices.
pub struct Iter<'f, T: 'static> {
    first: &'f [T],
    view: View<T>,
    at: usize,
    end: usize,
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Iter { view: self.view.clone(), ..*self }
    }
}

impl<'f, T> Iterator for Iter<'f, T> {
    type Item = Numbered<'f, T>;

    fn next(&mut self) -> Option<Numbered<'f, T>> {
        if self.at >= self.end {
            return None;
        }
        let at = self.at;
        self.at += 1;
        if let Some(found) = self.first.get(at) {
            return Some((u32::try_from(at).ok()?, Held(Hold::First(found))));
        }
        let later = at - self.first.len();
        let (berth, found) = match &self.view {
            View::None => return None,
            View::Here(known) => {
                let berth = *known.order.get(later)?;
                (berth, Hold::Here(known.berths.get(berth as usize)?.clone()?))
            }
            View::Shared(all) => {
                let (berth, found) = all.get(later)?;
                (*berth, Hold::Shared(found.clone()))
            }
        };
        Some((u32::try_from(self.first.len()).ok()? + berth, Held(found)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.at;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

/// Where the elements of the beginning are, for those who look no further: an index of one that came later
/// panics.
impl<T> Index<usize> for Fleet<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.first[at]
    }
}

impl<'f, T> IntoIterator for &'f Fleet<T> {
    type Item = Held<'f, T>;
    type IntoIter = Elements<'f, T>;

    fn into_iter(self) -> Elements<'f, T> {
        self.iter()
    }
}

/// The elements of a [`Fleet`].
pub struct Elements<'f, T: 'static>(Iter<'f, T>);

impl<'f, T> Iterator for Elements<'f, T> {
    type Item = Held<'f, T>;

    fn next(&mut self) -> Option<Held<'f, T>> {
        self.0.next().map(|(_, element)| element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T> ExactSizeIterator for Elements<'_, T> {}

impl<T> Clone for Elements<'_, T> {
    fn clone(&self) -> Self {
        Elements(self.0.clone())
    }
}

impl<T> FromIterator<T> for Fleet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Fleet<T> {
        Fleet::new(elements.into_iter().collect())
    }
}

impl<T> From<Vec<T>> for Fleet<T> {
    fn from(first: Vec<T>) -> Fleet<T> {
        Fleet::new(first)
    }
}

impl<T> Default for Fleet<T> {
    fn default() -> Fleet<T> {
        Fleet::new(Vec::new())
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Fleet<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(list: &Fleet<String>) -> Vec<(u32, String)> {
        list.numbered().map(|(at, e)| (at, e.to_string())).collect()
    }

    #[test]
    fn an_index_is_given_to_another_when_nobody_holds_it() {
        let list: Fleet<String> = ["a", "b"].map(String::from).into_iter().collect();
        assert_eq!((list.push("c".into()), list.push("d".into())), (2, 3));
        let c = list.get(2).unwrap();
        drop(list.remove(2));
        assert_eq!((list.len(), list.bound(), list.vacant()), (3, 4, 4));
        assert_eq!(list.get(2).as_deref().map(String::as_str), Some("c"));
        assert_eq!(list.push("e".into()), 4);
        drop(c);
        assert!(list.get(2).is_none());
        assert_eq!(list.push("f".into()), 2);
        let expected = [(0, "a"), (1, "b"), (3, "d"), (4, "e"), (2, "f")];
        assert_eq!(all(&list), expected.map(|(at, e)| (at, e.to_string())));
        assert!(list.remove(0).is_none() && list.remove(9).is_none());
    }

    #[test]
    fn a_thread_that_remembers_lets_go_when_it_is_told() {
        std::thread::spawn(|| {
            remember();
            let list: Fleet<Arc<()>> = Fleet::default();
            let element = Arc::new(());
            let at = list.push(element.clone());
            assert!(list.get(at).is_some() && list.iter().count() == 1);
            let token = list.remove(at).unwrap().token();
            assert_eq!(Arc::strong_count(&element), 2);
            list.renew();
            assert_eq!((Arc::strong_count(&element), list.vacant()), (2, at + 1));
            drop(token);
            assert_eq!((Arc::strong_count(&element), list.vacant()), (1, at));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn lists_that_follow_each_other_are_not_mixed_up() {
        std::thread::spawn(|| {
            remember();
            for n in 0..100usize {
                let list: Fleet<usize> = Fleet::default();
                assert!(list.get(0).is_none());
                list.push(n);
                assert_eq!(list.get(0).map(|e| *e), Some(n));
                let other: Fleet<String> = Fleet::default();
                other.push(n.to_string());
                assert_eq!(other.get(0).as_deref(), Some(&n.to_string()));
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn readers_see_whole_elements_while_others_come_and_go() {
        let list: Fleet<String> = Fleet::default();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            let reader = || {
                remember();
                while !over.load(Ordering::Relaxed) {
                    assert!(list.iter().all(|e| e.len() == 9));
                    if let Some(e) = list.get(3) {
                        assert_eq!(e.len(), 9);
                    }
                }
            };
            let readers = [s.spawn(reader), s.spawn(reader)];
            for _ in 0..2000 {
                let at = list.push("x".repeat(9));
                if list.len() > 5 {
                    drop(list.remove(at / 2));
                }
            }
            over.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|r| r.join().unwrap());
        });
        // A reader that the kernel let wait kept what it knew of, so the list may have become long; now all
        // is free.
        let bound = list.bound();
        for _ in list.len()..bound {
            list.push("y".repeat(9));
        }
        assert_eq!((list.len(), list.bound()), (bound, bound));
    }
}
