package lab

import (
	"net"
	"testing"
)

func TestAPortThatWasFoundIsFoundByNobodyElseWhileItsComponentRestarts(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	// Its component does not listen now, so the port is free.
	if !isFree(port) {
		t.Fatalf("port %d was found and is not free", port)
	}
	if claimRange(port, 1) || claimRange(port-1, 3) {
		t.Errorf("port %d was claimed a second time", port)
	}
	if claim, err := net.Listen("unix", "@rayfit-lab-port-0"); err != nil {
		t.Errorf("a port that nobody has cannot be claimed: %v", err)
	} else if err := claim.Close(); err != nil {
		t.Error(err)
	}
}
