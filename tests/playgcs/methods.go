package playgcs

import (
	"maps"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// idBytes is the length of a node id. A real GCS aborts on any other.
const idBytes = 28

// notFound is the status code of a key that is not there, inside an answer.
const notFound = 17

type method func(*Cluster, fields) (message, error)

// methods by their full names.
var methods = map[string]method{
	"ray.rpc.autoscaler.AutoscalerStateService/GetClusterResourceState":       (*Cluster).state,
	"ray.rpc.autoscaler.AutoscalerStateService/ReportAutoscalingState":        (*Cluster).report,
	"ray.rpc.autoscaler.AutoscalerStateService/DrainNode":                     (*Cluster).drain,
	"ray.rpc.autoscaler.AutoscalerStateService/ResizeRayletResourceInstances": (*Cluster).resize,
	"ray.rpc.NodeInfoGcsService/DrainNode":                                    (*Cluster).stop,
	"ray.rpc.InternalKVGcsService/InternalKVGet":                              (*Cluster).get,
	"ray.rpc.InternalKVGcsService/InternalKVPut":                              (*Cluster).put,
	"ray.rpc.InternalKVGcsService/InternalKVDel":                              (*Cluster).del,
	"ray.rpc.ObservabilityPubSubService/GcsPublish":                           (*Cluster).publish,
}

// call answers one call of a method.
func (c *Cluster) call(name string, request []byte) ([]byte, error) {
	do := methods[strings.TrimPrefix(name, "/")]
	if do == nil {
		return nil, status.Errorf(codes.Unimplemented, "the played GCS has no %s", name)
	}
	read, err := parse(request)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "%s: %v", name, err)
	}
	short := name[strings.LastIndex(name, "/")+1:]
	c.mu.Lock()
	c.calls[short]++
	c.changed()
	hook := c.hook
	c.mu.Unlock()
	if hook == nil || reads[short] {
		hook = func(string, bool) {}
	}
	hook(short, false)
	c.mu.Lock()
	reply, err := do(c, read)
	c.mu.Unlock()
	hook(short, true)
	return reply, err
}

// reads are the methods that change nothing of a cluster.
var reads = map[string]bool{"GetClusterResourceState": true, "InternalKVGet": true}

// state is GetClusterResourceState: {1 cluster_resource_state}.
func (c *Cluster) state(request fields) (message, error) {
	if last := request.number(1); last != 0 {
		return nil, status.Errorf(codes.Internal, "last_seen_cluster_resource_state_version is %d: a real GCS aborts if it is larger than its own", last)
	}
	if len(c.queued) > 0 && c.shown.IsZero() {
		c.shown = time.Now()
	}
	var state, reply message
	state.number(1, c.version)
	for _, n := range c.nodes {
		state.bytes(3, n.encode(time.Now()))
	}
	for _, n := range c.gone {
		state.bytes(3, n.encode(time.Now()))
	}
	for _, q := range c.queued {
		var bundle, byCount message
		bundle.amounts(1, q.shape)
		bundle.bytes(3, nil) // an empty label selector, as the demand of tasks has
		byCount.bytes(1, bundle)
		byCount.number(2, int64(q.count))
		state.bytes(4, byCount)
	}
	state.text(7, "session_played")
	reply.bytes(1, state)
	return reply, nil
}

func (n *node) encode(now time.Time) message {
	var m message
	m.bytes(1, n.id[:])
	m.text(2, n.pod)
	m.text(3, n.group)
	if n.dead {
		m.number(8, dead)
		return m
	}
	available := map[string]float64{}
	for name, total := range n.total {
		if free := total - n.used[name]; free > 0 {
			available[name] = free
		}
	}
	m.amounts(4, available)
	m.amounts(5, n.total)
	m.number(7, 1)
	if n.draining {
		m.number(8, draining)
	} else if n.busy() {
		m.number(8, running)
	} else {
		m.number(8, idle)
		m.number(9, max(1, now.Sub(n.idleSince).Milliseconds()))
	}
	m.text(10, n.address)
	m.text(11, n.group)
	m.labels(13, map[string]string{"ray.io/node-group": n.group})
	return m
}

// publish takes what drivers are to print, and prints it nowhere.
func (c *Cluster) publish(fields) (message, error) { return nil, nil }

// report is ReportAutoscalingState, of which nothing is kept but that it came.
func (c *Cluster) report(fields) (message, error) { return nil, nil }

// drain is the autoscaler's DrainNode{1 node_id, 2 reason}: {1 is_accepted, 2 why not}.
func (c *Cluster) drain(request fields) (message, error) {
	id := request.bytes(1)
	if len(id) != idBytes {
		return nil, status.Errorf(codes.Internal, "a node id of %d bytes: a real GCS aborts", len(id))
	}
	c.about("DrainNode", id)
	var reply message
	const idleTermination = 1
	n := c.find(id)
	if n != nil && n.busy() && request.number(2) == idleTermination {
		reply.text(2, "The node to be idle terminated is no longer idle.")
		return reply, nil
	}
	if n != nil && n.busy() {
		n.draining = true
		c.touch()
	} else if n != nil {
		c.die(n)
	}
	reply.flag(1, true)
	return reply, nil
}

// stop is NodeInfoGcsService's DrainNode{1 drain_node_data{1 node_id}}.
func (c *Cluster) stop(request fields) (message, error) {
	for _, v := range request[1] {
		data, err := parse(v.bytes)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		c.about("DrainNode", data.bytes(1))
		if n := c.find(data.bytes(1)); n != nil {
			c.die(n)
		}
	}
	return nil, nil
}

// resize is {1 node_id, 2 resources}: {1 total_resources}. A raylet does not go
// below what is in use.
func (c *Cluster) resize(request fields) (message, error) {
	c.about("ResizeRayletResourceInstances", request.bytes(1))
	n := c.find(request.bytes(1))
	if n == nil {
		return nil, status.Error(codes.Aborted, "NotFound: no such node")
	}
	wanted, err := request.amounts(2)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	for name, amount := range wanted {
		n.total[name] = max(amount, n.used[name])
	}
	n.idleSince = time.Now()
	c.place()
	var reply message
	reply.amounts(1, maps.Clone(n.total))
	return reply, nil
}

// get is InternalKVGet{1 key, 2 namespace}: {1 status{1 code}, 2 value}.
func (c *Cluster) get(request fields) (message, error) {
	var reply, inside message
	found, ok := c.kv[kvKey(request.bytes(2), request.bytes(1))]
	if !ok {
		inside.number(1, notFound)
	}
	reply.bytes(1, inside)
	if ok {
		reply.bytes(2, found)
	}
	return reply, nil
}

func kvKey(namespace, key []byte) string { return string(namespace) + "/" + string(key) }

// del is InternalKVDel{1 key, 2 namespace}: {1 status, 2 deleted}.
func (c *Cluster) del(request fields) (message, error) {
	key := kvKey(request.bytes(2), request.bytes(1))
	_, there := c.kv[key]
	delete(c.kv, key)
	var reply message
	reply.bytes(1, nil)
	reply.flag(2, there)
	return reply, nil
}

// put is InternalKVPut{1 key, 2 value, 3 overwrite, 4 namespace}: {1 status, 2 added}.
func (c *Cluster) put(request fields) (message, error) {
	c.kv[kvKey(request.bytes(4), request.bytes(1))] = request.bytes(2)
	var reply message
	reply.bytes(1, nil)
	reply.flag(2, true)
	return reply, nil
}
