package lab

import (
	"context"
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

func TestAClaimWaitsUntilTheOneBeforeLetsGo(t *testing.T) {
	const port = 1 // nobody's but this test's
	release, err := ClaimPort(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := ClaimPort(ended, port); err == nil {
		t.Error("a port was claimed twice")
	}
	second := make(chan error)
	go func() {
		again, err := ClaimPort(t.Context(), port)
		if err == nil {
			again()
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Errorf("the second claim did not wait: %v", err)
	default:
	}
	release()
	if err := <-second; err != nil {
		t.Error(err)
	}
}
