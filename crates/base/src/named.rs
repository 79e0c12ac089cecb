//! Enums whose values have names.

/// Gives an enum `as_str`: the text after `=`, else the name of the variant. With `listed` before it also `ALL`, with
/// `shown` also `Display`.
#[macro_export]
macro_rules! named {
    (@text $variant:ident) => { stringify!($variant) };
    (@text $variant:ident $text:expr) => { $text };
    (
        listed $(#[$meta:meta])* $vis:vis enum $name:ident {
            $($(#[$doc:meta])* $variant:ident $(= $text:expr)?,)+
        }
    ) => {
        $crate::named! {
            $(#[$meta])* $vis enum $name { $($(#[$doc])* $variant $(= $text)?,)+ }
        }

        impl $name {
            /// Every one, in order.
            $vis const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];
        }
    };
    (
        shown $(#[$meta:meta])* $vis:vis enum $name:ident {
            $($(#[$doc:meta])* $variant:ident $(= $text:expr)?,)+
        }
    ) => {
        $crate::named! {
            $(#[$meta])* $vis enum $name { $($(#[$doc])* $variant $(= $text)?,)+ }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
    (
        $(#[$meta:meta])* $vis:vis enum $name:ident {
            $($(#[$doc:meta])* $variant:ident $(= $text:expr)?,)+
        }
    ) => {
        $(#[$meta])* $vis enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// The text that stands for it.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $crate::named!(@text $variant $($text)?),)+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    const PEAR: &str = concat!("p", "ear");

    crate::named! {
        listed
        /// One with a text of its own, one without, one with a constant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Fruit {
            /// Red.
            RedApple = "red-apple",
            /// Yellow.
            Banana,
            /// Green.
            Pear = PEAR,
        }
    }

    crate::named! {
        shown
        #[derive(Clone, Copy)]
        enum Season {
            Winter = "cold",
        }
    }

    #[test]
    fn a_text_or_the_name_stands_for_a_value() {
        assert_eq!(Fruit::ALL, [Fruit::RedApple, Fruit::Banana, Fruit::Pear]);
        assert_eq!(Fruit::ALL.map(Fruit::as_str), ["red-apple", "Banana", "pear"]);
        assert_eq!(Season::Winter.to_string(), "cold");
    }
}
