//! Lists whose positions have a type of their own: the number of a node cannot be used to look up a
//! group.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

// A position is the number of an item, counted from 0. Lists of the same kind have their items in the same order.
macro_rules! positions {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::From)]
        pub(crate) struct $name(usize);

        impl From<$name> for usize {
            fn from(position: $name) -> Self {
                position.0
            }
        }
    )*};
}

positions! {
    /// A group of the RayCluster, within a decision.
    GroupIndex;
    /// An entry of the planned nodes, within a decision. It may stand for several equal nodes.
    NodeIndex;
    /// A Kubernetes node, within a decision.
    KubeNodeIndex;
    /// A demand, within a decision.
    DemandIndex;
    /// A standby demand, within a decision.
    StandbyIndex;
}

impl GroupIndex {
    /// The head group.
    pub(crate) const HEAD: Self = Self(0);
}

/// A list of items that are looked up by positions of type `P`.
#[derive(Debug, Clone)]
pub(crate) struct List<P, T> {
    items: Vec<T>,
    positions: PhantomData<P>,
}

/// One item for each group.
pub(crate) type ByGroup<T> = List<GroupIndex, T>;

impl<P: Copy + From<usize> + Into<usize>, T> List<P, T> {
    pub(crate) fn get(&self, position: P) -> Option<&T> {
        self.items.get(position.into())
    }

    pub(crate) fn get_mut(&mut self, position: P) -> Option<&mut T> {
        self.items.get_mut(position.into())
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The position of the item that is added `later` items after the next one.
    pub(crate) fn upcoming(&self, later: usize) -> P {
        P::from(self.items.len() + later)
    }

    /// The distance of the position from the end of the list, in items; `None` if it is in the list.
    pub(crate) fn behind(&self, position: P) -> Option<usize> {
        position.into().checked_sub(self.items.len())
    }

    /// Adds an item. Returns its position.
    pub(crate) fn push(&mut self, item: T) -> P {
        self.items.push(item);
        P::from(self.items.len() - 1)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// The items with their positions.
    pub(crate) fn enumerate(&self) -> impl Iterator<Item = (P, &T)> {
        let items = self.items.iter().enumerate();
        items.map(|(number, item)| (P::from(number), item))
    }

    // `use<P, T>` without a lifetime: the list may be changed while its positions are gone through.
    pub(crate) fn positions(&self) -> impl Iterator<Item = P> + use<P, T> {
        (0..self.items.len()).map(P::from)
    }

    /// A list of the same kind, with an item for each item of this one.
    pub(crate) fn map<U>(&self, of: impl FnMut(&T) -> U) -> List<P, U> {
        self.items.iter().map(of).collect()
    }
}

impl<P: Copy + From<usize> + Into<usize>> List<P, bool> {
    /// The truth value at a position; false beyond the end.
    pub(crate) fn holds(&self, position: P) -> bool {
        self.get(position).copied().unwrap_or(false)
    }
}

impl<P, T> Default for List<P, T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            positions: PhantomData,
        }
    }
}

impl<P: Copy + From<usize> + Into<usize>, T> Index<P> for List<P, T> {
    type Output = T;

    fn index(&self, position: P) -> &T {
        &self.items[position.into()]
    }
}

impl<P: Copy + From<usize> + Into<usize>, T> IndexMut<P> for List<P, T> {
    fn index_mut(&mut self, position: P) -> &mut T {
        &mut self.items[position.into()]
    }
}

impl<P, T> FromIterator<T> for List<P, T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self {
            items: items.into_iter().collect(),
            positions: PhantomData,
        }
    }
}

impl<P, T> IntoIterator for List<P, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}
