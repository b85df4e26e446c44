package lab

import (
	"context"
	"slices"
	"sync"
	"time"
)

// collection keeps a copy of all objects at one API path by watching it.
type collection[T any] struct {
	path  string
	key   func(T) string
	mu    sync.Mutex
	items map[string]T
	// changed is called after each change, never concurrently.
	changed func()
}

// retryInterval is the pause before a watch is opened again; the API server is
// away for seconds when a test restarts it.
const retryInterval = 200 * time.Millisecond

// follow watches until the context ends. A broken watch is opened again and
// starts with all objects, which replace the copy.
func (c *collection[T]) follow(ctx context.Context, api *client) {
	Follow(ctx, func() { _ = c.watchOnce(ctx, api) })
}

func (c *collection[T]) watchOnce(ctx context.Context, api *client) error {
	fresh := map[string]T{}
	initial := true
	return watch(ctx, api, c.path, func(event WatchEvent[T]) {
		switch {
		case event.Type == "BOOKMARK":
			if initial {
				initial = false
				c.replace(fresh)
			}
		case initial:
			fresh[c.key(event.Object)] = event.Object
		default:
			c.change(event)
		}
	})
}

func (c *collection[T]) replace(items map[string]T) {
	c.mu.Lock()
	c.items = items
	c.mu.Unlock()
	c.changed()
}

func (c *collection[T]) change(event WatchEvent[T]) {
	c.mu.Lock()
	if event.Type == "DELETED" {
		delete(c.items, c.key(event.Object))
	} else {
		c.items[c.key(event.Object)] = event.Object
	}
	c.mu.Unlock()
	c.changed()
}

// isListed says whether all objects that there were at the beginning have been seen.
func (c *collection[T]) isListed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items != nil
}

// all returns the objects in the order of their keys.
func (c *collection[T]) all() []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := make([]string, 0, len(c.items))
	for key := range c.items {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	items := make([]T, 0, len(keys))
	for _, key := range keys {
		items = append(items, c.items[key])
	}
	return items
}

// store follows everything that routing needs.
type store struct {
	services collection[service]
	pods     collection[pod]
	nodes    collection[node]
}

func newStore(changed func()) *store {
	s := &store{}
	s.services = collection[service]{path: "/api/v1/services", changed: changed, key: func(o service) string { return o.Metadata.path() }}
	s.pods = collection[pod]{path: "/api/v1/pods", changed: changed, key: func(o pod) string { return o.Metadata.path() }}
	s.nodes = collection[node]{path: "/api/v1/nodes", changed: changed, key: func(o node) string { return o.Metadata.Name }}
	return s
}

func (s *store) follow(ctx context.Context, api *client) {
	var running sync.WaitGroup
	running.Go(func() { s.services.follow(ctx, api) })
	running.Go(func() { s.pods.follow(ctx, api) })
	running.Go(func() { s.nodes.follow(ctx, api) })
	running.Wait()
}

func (s *store) cluster() cluster {
	return cluster{services: s.services.all(), pods: s.pods.all(), nodes: s.nodes.all()}
}
