package playgcs

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Statuses of a node, by Ray's numbers.
const (
	running  int64 = 1
	dead     int64 = 2
	idle     int64 = 3
	draining int64 = 4
)

// Cluster is one played Ray cluster: its nodes, and tasks that all need the same.
type Cluster struct {
	Name string

	mu      sync.Mutex
	version int64
	nodes   map[string]*node // by pod
	gone    []*node
	queued  map[string]*queue
	kv      map[string][]byte
	calls   map[string]int
	conns   int
	strange []string
	killed  []string
	hook    Hook
	changed func()
	shown   time.Time // when the newest demand was first told to anybody
}

// Hook is called for each call of a method that changes something, before it is
// carried out and again after, before its answer is sent.
type Hook func(method string, after bool)

// node is a Ray node.
type node struct {
	id        [28]byte
	pod       string
	group     string
	address   string
	total     map[string]float64
	used      map[string]float64
	idleSince time.Time
	head      bool
	dead      bool
	// draining nodes finish their work, take no other, and end.
	draining bool
}

// queue is pending tasks of one shape.
type queue struct {
	shape map[string]float64
	count int
}

func newCluster(name string, changed func()) *Cluster {
	return &Cluster{Name: name, changed: changed, nodes: map[string]*node{}, queued: map[string]*queue{}, kv: map[string][]byte{}, calls: map[string]int{}}
}

// Join adds a node that is a pod's.
func (c *Cluster) Join(pod, group, address string, head bool, total map[string]float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[pod] != nil {
		return
	}
	n := &node{pod: pod, group: group, address: address, head: head, total: maps.Clone(total), used: map[string]float64{}, idleSince: time.Now()}
	sum := sha256.Sum256([]byte(c.Name + "/" + pod + time.Now().String()))
	copy(n.id[:], sum[:28])
	n.total["node:"+address] = 1
	c.nodes[pod] = n
	c.place()
}

// Leave takes a pod's node away, with the tasks on it.
func (c *Cluster) Leave(pod string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[pod]; n != nil {
		if n.busy() {
			c.killed = append(c.killed, pod)
		}
		c.die(n)
	}
}

// Killed are the pods that went while tasks ran on them.
func (c *Cluster) Killed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.killed)
}

// OnCall sets the hook; nil for none.
func (c *Cluster) OnCall(hook Hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = hook
}

// Total is how much of a resource a pod's node has, by Ray's books.
func (c *Cluster) Total(pod, resource string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[pod]; n != nil {
		return n.total[resource]
	}
	return 0
}

func (c *Cluster) die(n *node) {
	n.dead = true
	delete(c.nodes, n.pod)
	c.gone = append(c.gone, n)
	if len(c.gone) > mostGone {
		c.gone = c.gone[1:]
	}
	c.touch()
}

// mostGone is how many nodes that are gone a GCS still tells of.
const mostGone = 1000

func (c *Cluster) touch() {
	c.version++
	c.changed()
}

// Ask adds tasks, each of which needs the same resources.
func (c *Cluster) Ask(count int, shape map[string]float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprint(shape)
	if c.queued[key] == nil {
		c.queued[key] = &queue{shape: shape}
	}
	c.queued[key].count += count
	c.shown = time.Time{}
	c.place()
}

// Shown is when somebody was first told of the newest demand, zero before.
func (c *Cluster) Shown() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}

// Finish ends all tasks, those that wait included.
func (c *Cluster) Finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued = map[string]*queue{}
	for _, n := range c.nodes {
		c.finish(n)
	}
	c.touch()
}

// place puts waiting tasks onto nodes with room.
func (c *Cluster) place() {
	defer c.touch()
	for _, key := range slices.Sorted(maps.Keys(c.queued)) {
		q := c.queued[key]
		for _, pod := range slices.Sorted(maps.Keys(c.nodes)) {
			n := c.nodes[pod]
			for q.count > 0 && n.take(q.shape) {
				q.count--
			}
		}
		if q.count == 0 {
			delete(c.queued, key)
		}
	}
}

func (n *node) take(shape map[string]float64) bool {
	if n.draining {
		return false
	}
	for name, amount := range shape {
		if n.total[name]-n.used[name] < amount {
			return false
		}
	}
	for name, amount := range shape {
		n.used[name] += amount
	}
	return true
}

func (n *node) busy() bool {
	for _, amount := range n.used {
		if amount > 0 {
			return true
		}
	}
	return false
}

// Waiting is how many tasks have no node yet.
func (c *Cluster) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := 0
	for _, q := range c.queued {
		waiting += q.count
	}
	return waiting
}

// Nodes is how many nodes live, the head included.
func (c *Cluster) Nodes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.nodes)
}

// Calls is how often each method was called.
func (c *Cluster) Calls() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// FinishIn ends the tasks that run on the workers of a group. Tasks that wait may
// take their place.
func (c *Cluster) FinishIn(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if n.group == group {
			c.finish(n)
		}
	}
	c.place()
}

// finish ends the tasks on a node.
func (c *Cluster) finish(n *node) {
	n.used, n.idleSince = map[string]float64{}, time.Now()
	if n.draining {
		c.die(n)
	}
}

// Connections is how many connections were ever opened to the cluster's GCS.
func (c *Cluster) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns
}

func (c *Cluster) connected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns++
	c.changed()
}

// Strange are the calls about nodes that the cluster has never had, so that they
// were meant for another: "method node".
func (c *Cluster) Strange() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.strange)
}

// about notes whether a call's node is, or was, one of the cluster's.
func (c *Cluster) about(method string, id []byte) {
	gone := func(n *node) bool { return string(n.id[:]) == string(id) }
	if c.find(id) == nil && !slices.ContainsFunc(c.gone, gone) {
		c.strange = append(c.strange, fmt.Sprintf("%s %x", method, id))
	}
}

// find is the live node of an id.
func (c *Cluster) find(id []byte) *node {
	for _, n := range c.nodes {
		if string(n.id[:]) == string(id) {
			return n
		}
	}
	return nil
}
