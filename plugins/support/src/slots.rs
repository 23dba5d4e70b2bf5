//! Handles: a number for each thing that is open, given again once it is closed.

/// Things by their handle.
#[derive(Debug)]
pub struct Slots<T>(Vec<Option<T>>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Slots<T> {
    /// Keeps it, and gives its handle.
    pub fn insert(&mut self, thing: T) -> u32 {
        let free = self
            .0
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.0.len());
        if free == self.0.len() {
            self.0.push(None);
        }
        self.0[free] = Some(thing);
        free as u32
    }

    /// What is open under this handle.
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut T> {
        self.0.get_mut(handle as usize)?.as_mut()
    }

    /// Forgets it.
    pub fn remove(&mut self, handle: u32) {
        if let Some(slot) = self.0.get_mut(handle as usize) {
            *slot = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_free_again_once_it_is_closed() {
        let mut slots = Slots::default();
        assert_eq!((slots.insert('a'), slots.insert('b')), (0, 1));
        slots.remove(0);
        assert_eq!(slots.get_mut(0), None);
        assert_eq!((slots.insert('c'), slots.insert('d')), (0, 2));
        assert_eq!(slots.get_mut(1), Some(&mut 'b'));
        assert_eq!(slots.get_mut(9), None);
        slots.remove(9);
    }
}
