//! Requests that an account may make.

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The scope of the permission.
    pub scope: AccessScope,
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource, in plural.
    pub resource: &'static str,
    /// The name of the object, if the permission is limited to one.
    pub name: Option<&'static str>,
    /// The verbs.
    pub verbs: &'static [&'static str],
}

/// The scope of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessScope {
    /// In Rayfit's namespace.
    Namespace,
    /// In the whole cluster.
    Cluster,
    /// In the namespaces whose clusters are scaled: all, or those that were chosen.
    Scaled,
}

impl AccessScope {
    /// Requests about all objects of a resource.
    pub(super) const fn may(
        self,
        verbs: &'static [&'static str],
        group: &'static str,
        resource: &'static str,
    ) -> Access {
        Access {
            scope: self,
            group,
            resource,
            name: None,
            verbs,
        }
    }
}

impl Access {
    /// These requests, about one object only.
    pub(super) const fn named(self, name: &'static str) -> Self {
        Self {
            name: Some(name),
            ..self
        }
    }
}
