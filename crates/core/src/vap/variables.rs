//! The variables that the rules' expressions use.
//!
//! `s` is an object, the new one or the stored one:
//!
//! - `object`: itself; `name`, `annotations`
//! - `path`, `has`, `cluster`: where the RayClusterSpec is, whether there is one, and it
//! - `auto`, `options`, `version`, `mode`: autoscaling is on; `autoscalerOptions`; its `version`;
//!   the value of `rayfit.dev/reconcile`
//! - `env`: the entries for the version of the autoscaler in the head's environment; the last one
//!   counts
//! - `kept`: how many characters of a group's name are in names of pods
//! - `ippr`, `entries`, `keys`: the text of `ray.io/ippr`; the texts of its groups' entries, if it
//!   is plain; the names at their beginnings, in quotes
//! - `groups`: the head group, then the worker groups
//!
//! `g` is a group: `name`, `head`, `path`, `spec`, `params` (`rayStartParams`), `resources`,
//! `containers`, and `limits` and `requests` of the first container. What is absent is empty.
//!
//! `l` is a group that `ray.io/ippr` lists: `g`, `entry`, and its resize limits `cpu` and `memory`,
//! `none` where there is none.
//!
//! `quantity()` must never get a large exponent: the API server takes minutes to parse
//! `1e999999999`, in spite of its cost limits. So expressions check for that first.
//!
//! Everything is a list or map of `dyn`, because CEL as Kubernetes configures it does not allow
//! mixing other types.

/// The object, and the stored object if there is one.
pub const SUBJECTS: &str = r#"[object, oldObject].filter(o, o != null)
.map(o, {
  'object': dyn(o),
  'found': dyn(o.kind == 'RayCluster' ? o.?spec : o.kind == 'RayJob' ? o.?spec.?rayClusterSpec : o.kind == 'RayService' ? o.?spec.?rayClusterConfig : o.?spec.?jobTemplate.?rayClusterSpec),
  'path': dyn(o.kind == 'RayCluster' ? 'spec' : o.kind == 'RayJob' ? 'spec.rayClusterSpec' : o.kind == 'RayService' ? 'spec.rayClusterConfig' : 'spec.jobTemplate.rayClusterSpec')
})
.map(v, {
  'object': v.object,
  'path': v.path,
  'has': dyn(v.found.hasValue()),
  'cluster': dyn(v.found.orValue({})),
  'name': dyn(v.object.metadata.?name.orValue(v.object.metadata.?generateName.orValue(''))),
  'annotations': dyn(v.object.metadata.?annotations.orValue({})),
  'ippr': dyn(v.object.metadata.?annotations[?'ray.io/ippr'].orValue(''))
})
.map(v, {
  'object': v.object,
  'path': v.path,
  'has': v.has,
  'cluster': v.cluster,
  'name': v.name,
  'annotations': v.annotations,
  'ippr': v.ippr,
  'entries': dyn(v.ippr.matches(r'^\s*\{(\s*"[^"\\{}]*"\s*:\s*("[^"\\{}]*"|[-+.0-9a-zA-Z]+)\s*,)*\s*"groups"\s*:\s*\{\s*"[^"\\{}]*"\s*:\s*\{[^\\{}\[\]]*\}(\s*,\s*"[^"\\{}]*"\s*:\s*\{[^\\{}\[\]]*\})*\s*\}(\s*,\s*"[^"\\{}]*"\s*:\s*("[^"\\{}]*"|[-+.0-9a-zA-Z]+))*\s*\}\s*$')
    ? v.ippr.findAll(r'"[^"\\{}]*"\s*:\s*\{[^\\{}\[\]]*\}') : [])
})
.map(v, {
  'object': v.object,
  'path': v.path,
  'has': v.has,
  'cluster': v.cluster,
  'name': v.name,
  'annotations': v.annotations,
  'ippr': v.ippr,
  'auto': dyn(v.cluster.?enableInTreeAutoscaling.orValue(false)),
  'options': dyn(v.cluster.?autoscalerOptions.orValue({})),
  'version': dyn(v.cluster.?autoscalerOptions.?version.orValue('')),
  'mode': dyn(v.object.kind == 'RayCronJob' ? 'ray' : v.annotations[?'rayfit.dev/reconcile'].orValue('ray')),
  'env': dyn(v.cluster.?headGroupSpec.?template.?spec.?containers[?0].?env.orValue([]).filter(e, e.name == 'RAY_enable_autoscaler_v2')),
  'kept': dyn([v.object.kind == 'RayCluster' ? 49 : 43].map(most, v.name.size() > most ? 0 : most - (v.name == '' ? 1 : v.name.size()))[0]),
  'entries': v.entries,
  'keys': dyn(v.entries.map(e, e.find('^"[^"]*"'))),
  'groups': dyn(((has(v.cluster.headGroupSpec) ? [{'name': dyn('headgroup'), 'head': dyn(true), 'path': dyn(v.path + '.headGroupSpec'), 'spec': dyn(v.cluster.headGroupSpec)}] : [])
    + v.cluster.?workerGroupSpecs.orValue([]).map(w, {'name': dyn(w.?groupName.orValue('')), 'head': dyn(false), 'path': dyn(v.path + '.workerGroupSpecs[name=' + w.?groupName.orValue('') + ']'), 'spec': dyn(w)}))
    .map(g, {
      'name': g.name,
      'head': g.head,
      'path': g.path,
      'spec': g.spec,
      'params': dyn(g.spec.?rayStartParams.orValue({})),
      'resources': dyn(g.spec.?resources.orValue({})),
      'containers': dyn(g.spec.?template.?spec.?containers.orValue([])),
      'limits': dyn(g.spec.?template.?spec.?containers[?0].?resources.?limits.orValue({})),
      'requests': dyn(g.spec.?template.?spec.?containers[?0].?resources.?requests.orValue({}))
    }))
})"#;

/// The groups of `s` that `ray.io/ippr` lists, each once, with the last entry of its name.
///
/// A resize limit is converted to the form that Kubernetes parses, as Ray does: blanks around the
/// number and underscores in it are removed, and `K` becomes `k`.
pub const LISTED: &str = r#"s.groups.map(g, {'g': dyn(g), 'at': dyn(s.keys.lastIndexOf('"' + g.name + '"'))})
.filter(l, l.at >= 0)
.map(l, {'g': l.g, 'entry': dyn(s.entries[l.at])})
.map(l, {'g': l.g, 'entry': l.entry,
  'limits': dyn([l.entry.find(r'"max-cpu"\s*:\s*("[^"]*"|-?[0-9][-+.0-9eE]*)'), l.entry.find(r'"max-memory"\s*:\s*("[^"]*"|-?[0-9]+)\s*[,}]')]
    .map(limit, limit == '' ? 'none' : limit.find(r':\s*("[^"]*"|-?[0-9][-+.0-9eE]*)').substring(1).trim().replace('"', ''))
    .map(limit, limit.matches('[a-zA-Z][ ]+$') ? limit : limit.replace(' ', '').replace('_', ''))
    .map(limit, limit.matches('[eE][-+]?[0-9.]{3}') ? 'beyond reason' : limit)
    .map(limit, limit.endsWith('K') ? limit.substring(0, limit.size() - 1) + 'k' : limit))})
.map(l, {'g': l.g, 'entry': l.entry, 'cpu': dyn(l.limits[0]), 'memory': dyn(l.limits[1])})"#;
