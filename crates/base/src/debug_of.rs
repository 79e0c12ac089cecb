//! `Debug` of types that hold what has none.

/// Implements `Debug` with some of the fields: `debug_of!([K: Bound] Name<K>: field, other)`.
#[macro_export]
macro_rules! debug_of {
    ($([$($bounds:tt)+])? $name:ident $(<$($argument:tt),+>)?: $($field:ident),*) => {
        impl $(<$($bounds)+>)? ::std::fmt::Debug for $name $(<$($argument),+>)? {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter
                    .debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    struct Made<T> {
        shown: u32,
        make: fn() -> T,
    }

    crate::debug_of!([T] Made<T>: shown);

    struct Borrowed<'a>(&'a str);

    crate::debug_of!(Borrowed<'_>:);

    #[test]
    fn the_named_fields_are_shown() {
        let made = Made { shown: 1, make: || 2 };
        assert_eq!(format!("{made:?}"), "Made { shown: 1, .. }");
        assert_eq!((made.make)(), 2);
        let borrowed = Borrowed("text");
        assert_eq!(format!("{borrowed:?}"), "Borrowed { .. }");
        assert_eq!(borrowed.0, "text");
    }
}
