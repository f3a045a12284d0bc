//! Caches of one Rust type, and handles that free themselves.

use crate::builder::CacheBuilder;
use crate::cache::{Cache, Leak};
use crate::config::Error;
use crate::engine::Engine;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A cache of values of type `T`.
#[derive(Debug)]
pub struct TypedCache<T> {
    cache: Cache,
    of: PhantomData<fn(T) -> T>,
}

/// A value in a cache; dropping it drops the value and frees the object.
#[derive(Debug)]
pub struct Slabbed<'c, T> {
    value: NonNull<T>,
    cache: &'c TypedCache<T>,
}

// SAFETY: a handle owns its value like a Box; its cache may be used from any thread.
unsafe impl<T: Send> Send for Slabbed<'_, T> {}
// SAFETY: a shared handle gives only shared references to the value.
unsafe impl<T: Sync> Sync for Slabbed<'_, T> {}

impl<T> TypedCache<T> {
    /// A cache named `name` with the engine's defaults.
    pub fn new(engine: &Engine, name: &str) -> Result<Self, Error> {
        Self::with(CacheBuilder::new(engine, name, Layout::new::<T>()))
    }

    /// A cache with chosen options. A constructor is called for objects as raw memory;
    /// values are written over it.
    pub fn with(builder: CacheBuilder<'_>) -> Result<Self, Error> {
        let cache = builder.layout(Layout::new::<T>()).build()?;
        Ok(Self {
            cache,
            of: PhantomData,
        })
    }

    /// Puts a value into the cache; gives it back when memory is short.
    pub fn insert(&self, value: T) -> Result<Slabbed<'_, T>, T> {
        let Some(object) = self.cache.alloc() else {
            return Err(value);
        };
        let at = object.cast::<T>();
        // SAFETY: the object is new, of this layout, and nobody else's.
        unsafe { at.write(value) };
        Ok(Slabbed {
            value: at,
            cache: self,
        })
    }

    /// The cache below.
    pub const fn raw(&self) -> &Cache {
        &self.cache
    }

    /// Ends the cache; tells of values whose handles were forgotten.
    pub fn destroy(self) -> Result<(), Leak> {
        self.cache.destroy()
    }
}

impl<T> Deref for Slabbed<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the handle owns an initialised value.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for Slabbed<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the handle owns an initialised value, and it is borrowed mutably.
        unsafe { self.value.as_mut() }
    }
}

impl<T> Drop for Slabbed<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the value is initialised and dropped once; the object came from this cache.
        unsafe {
            self.value.drop_in_place();
            self.cache.cache.free(self.value.cast());
        }
    }
}
