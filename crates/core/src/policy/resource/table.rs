//! Tables of settings: one line for each setting of a policy.

/// Declares settings that may all be left out. Each line has the name of a setting, its type, its range and what
/// `kubectl explain` says of it; from it follows how policies combine. A setting behind `in` is a group of others.
macro_rules! settings {
    ($(#[$of:meta])* pub struct $name:ident {
        $($(#[$about:meta])* pub $field:ident: $(in $group:ident)? $($kind:ty)?,)*
    }) => {
        $(#[$of])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$about])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $field: Option<$($kind)? $($group)?>,)*
        }

        impl $name {
            /// Writes what is set here over `target`.
            pub(crate) fn write_over(&self, target: &mut Self) {
                $(if let Some(value) = &self.$field {
                    settings!(@write value, target.$field $(, $group)?);
                })*
            }
        }
    };
    (@write $value:ident, $target:expr) => { $target = Some($value.clone()) };
    (@write $value:ident, $target:expr, $group:ident) => { $value.write_over($target.get_or_insert_default()) };
}

pub(super) use settings;
