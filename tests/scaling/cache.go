package scaling

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// Seen is an object with the moments at which its first and its last state
// arrived here. Kubernetes' own time stamps have whole seconds only.
type Seen struct {
	rig.Object
	First, Last time.Time
	// Ready is when its condition Ready was first true, Gone when it was
	// deleted, zero before. Failed is when a pod had failed by itself, and nobody
	// had deleted it.
	Ready, Gone, Failed time.Time
}

// objectCache keeps a copy of the objects at an API path, those that are gone included.
type objectCache struct {
	path    string
	changed func()
	note    func(o rig.Object, gone bool) // told of every state of every object, if set
	synced  chan struct{}

	mu    sync.Mutex
	items map[string]*Seen // by uid
	names map[string]*Seen // the last of each name
}

func newObjectCache(path string, changed func()) *objectCache {
	return &objectCache{path: path, changed: changed, synced: make(chan struct{}), items: map[string]*Seen{}, names: map[string]*Seen{}}
}

// follow watches until the context ends. A broken watch is opened again.
func (f *objectCache) follow(ctx context.Context, l *lab.Lab) {
	lab.Follow(ctx, func() {
		present := map[string]bool{}
		initial := true
		_ = lab.Watch(ctx, l, f.path, func(event lab.WatchEvent[rig.Object]) {
			if event.Type != "BOOKMARK" {
				present[f.record(event)] = true
			} else if initial {
				initial = false
				f.forgetAllBut(present)
			}
			f.changed()
		})
	})
}

func (f *objectCache) record(event lab.WatchEvent[rig.Object]) (uid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	uid, _ = event.Object.Get("metadata.uid").(string)
	now := time.Now()
	item := f.items[uid]
	if item == nil {
		item = &Seen{First: now}
		f.items[uid] = item
	}
	item.Object, item.Last = event.Object, now
	if f.note != nil {
		f.note(event.Object, event.Type == "DELETED")
	}
	if item.Ready.IsZero() && ready(*item) == nil {
		item.Ready = now
	}
	if item.Failed.IsZero() && hasFailed(item.Object) && item.Get("metadata.deletionTimestamp") == nil {
		item.Failed = now
	}
	if last := f.names[item.Name()]; last == nil || !item.First.Before(last.First) {
		f.names[item.Name()] = item
	}
	if event.Type == "DELETED" {
		item.Gone = now
	}
	return uid
}

// forgetAllBut notes what was deleted while no watch was open.
func (f *objectCache) forgetAllBut(present map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, item := range f.items {
		if !present[uid] && item.Gone.IsZero() {
			item.Gone = time.Now()
		}
	}
	select {
	case <-f.synced:
	default:
		close(f.synced)
	}
}

// named is the last object of a name, as it was last seen.
func (f *objectCache) named(name string) (Seen, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if item := f.names[name]; item != nil {
		return *item, true
	}
	return Seen{}, false
}

// all returns copies of the objects that pass, oldest first.
func (f *objectCache) all(pass func(*Seen) bool) []Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []Seen
	for _, item := range f.items {
		if pass(item) {
			found = append(found, *item)
		}
	}
	slices.SortFunc(found, func(a, b Seen) int {
		if order := a.First.Compare(b.First); order != 0 {
			return order
		}
		return strings.Compare(a.Name(), b.Name())
	})
	return found
}

// hasFailed says whether a pod has failed, or a container of it: KubeRay deletes such a
// worker before the kubelet has said that the pod has.
func hasFailed(pod rig.Object) bool {
	statuses, _ := pod.Get("status.containerStatuses").([]any)
	ended := slices.ContainsFunc(statuses, func(status any) bool {
		code := rig.Object(status.(map[string]any)).Get("state.terminated.exitCode")
		return code != nil && code != 0.0
	})
	return ended || pod.Get("status.phase") == "Failed"
}
