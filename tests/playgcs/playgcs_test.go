package playgcs

import (
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"rayfit.dev/rayfit/tests/lab"
)

const service = "/ray.rpc.autoscaler.AutoscalerStateService/"

var wire = raw{}

// ask calls a method of a cluster that is served on loopback.
func ask(t *testing.T, connection *grpc.ClientConn, method string, request message) (fields, error) {
	t.Helper()
	raw := []byte(request)
	var reply []byte
	if err := connection.Invoke(t.Context(), service+method, &raw, &reply, grpc.ForceCodecV2(wire)); err != nil {
		return nil, err
	}
	read, err := parse(reply)
	if err != nil {
		t.Fatal(err)
	}
	return read, nil
}

func TestAPlayedClusterTakesPlacesAndKeepsTasks(t *testing.T) {
	port, err := lab.HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	server := New(func() {})
	defer server.Stop()
	c := server.Cluster("ray/demo")
	if err := server.Serve(c, address); err != nil {
		t.Fatal(err)
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()

	c.Join("worker", "cpu", "127.0.0.2", false, map[string]float64{"CPU": 2})
	c.Ask(5, map[string]float64{"CPU": 1})
	if n := c.Waiting(); n != 3 {
		t.Errorf("%d tasks wait for a node of two CPUs that has two, of five", n)
	}
	id := c.nodes["worker"].id

	var drain message
	drain.bytes(1, id[:])
	drain.number(2, 1)
	if reply, err := ask(t, connection, "DrainNode", drain); err != nil || reply.number(1) != 0 || len(reply.bytes(2)) == 0 {
		t.Errorf("draining a busy node for idleness: %v, %v", reply, err)
	}
	var short message
	short.bytes(1, id[:4])
	if _, err := ask(t, connection, "DrainNode", short); err == nil {
		t.Error("an id of four bytes, on which a real GCS aborts, is taken")
	}

	var resize message
	resize.bytes(1, id[:])
	resize.amounts(2, map[string]float64{"CPU": 1})
	reply, err := ask(t, connection, "ResizeRayletResourceInstances", resize)
	if err != nil {
		t.Fatal(err)
	}
	if total, err := reply.amounts(1); err != nil || total["CPU"] != 2 {
		t.Errorf("shrunk below its use to %v (%v)", total, err)
	}

	c.Finish()
	c.Ask(1, map[string]float64{"CPU": 1})
	var preempted message
	preempted.bytes(1, id[:])
	preempted.number(2, 2)
	if reply, err := ask(t, connection, "DrainNode", preempted); err != nil || reply.number(1) != 1 || c.Nodes() != 1 {
		t.Errorf("draining a busy node that leaves: %v, %v, %d nodes left", reply, err, c.Nodes())
	}
	c.Ask(1, map[string]float64{"CPU": 1})
	if n := c.Waiting(); n != 1 {
		t.Errorf("%d tasks wait instead of the one that came while the node drains", n)
	}
	c.Finish()
	if n := c.Nodes(); n != 0 {
		t.Errorf("%d nodes are left of one that has drained", n)
	}
	c.Join("worker", "cpu", "127.0.0.2", false, map[string]float64{"CPU": 2})
	id = c.nodes["worker"].id
	drain = nil
	drain.bytes(1, id[:])
	drain.number(2, 1)
	if reply, err := ask(t, connection, "DrainNode", drain); err != nil || reply.number(1) != 1 || c.Nodes() != 0 {
		t.Errorf("draining an idle node: %v, %v, %d nodes left", reply, err, c.Nodes())
	}
	if _, err := ask(t, connection, "NoSuchMethod", nil); err == nil {
		t.Error("a method that is not played is answered")
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	server := New(func() {})
	defer server.Stop()
	if err := server.Serve(server.Cluster("a"), "0.0.0.0:6379"); err == nil {
		t.Error("it listens on every address")
	}
}
