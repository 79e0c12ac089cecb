//! `Display` as a table of texts.

/// Implements `Display`. A row has a pattern and the text of what matches it, with arguments where names in the text do
/// not do: `display_of! { Fruit: Self::Apple { worms } => "{worms} worms"; }`. Width and padding of an outer format
/// have no effect. `rustfmt` does not reformat the rows.
#[macro_export]
macro_rules! display_of {
    (
        $name:ident $(<$($argument:tt),+>)?:
        $($pattern:pat $(if $guard:expr)? => $text:literal $(, $value:expr)*;)+
    ) => {
        impl ::std::fmt::Display for $name $(<$($argument),+>)? {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $($pattern $(if $guard)? => ::std::write!(formatter, $text $(, $value)*),)+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    enum Fruit<'a> {
        Apple { worms: u8 },
        Berry(&'a str),
        Nut,
    }

    crate::display_of! { Fruit<'_>:
        Self::Apple { worms: 0 } => "a sound apple";
        Self::Apple { worms } if *worms > 9 => "an apple with nine and {} worms", worms - 9;
        Self::Apple { worms } => "an apple with {worms} worms";
        Self::Berry(colour) => "a {} berry", colour.to_uppercase();
        Self::Nut => "a nut";
    }

    #[test]
    fn each_row_has_its_text() {
        let texts = [
            (Fruit::Apple { worms: 0 }, "a sound apple"),
            (Fruit::Apple { worms: 2 }, "an apple with 2 worms"),
            (Fruit::Apple { worms: 10 }, "an apple with nine and 1 worms"),
            (Fruit::Berry("blue"), "a BLUE berry"),
            (Fruit::Nut, "a nut"),
        ];
        for (fruit, text) in texts {
            assert_eq!(fruit.to_string(), text);
        }
    }
}
