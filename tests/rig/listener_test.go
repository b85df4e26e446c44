package rig

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

func TestWhoListensIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	log := fmt.Sprintf("error: cannot listen on 127.0.0.1:%d: Address already in use (os error 98)", port)
	if said := whoListens(log); !strings.Contains(said, os.Args[0]) {
		t.Errorf("it says %s, and not %s", said, os.Args[0])
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if said := whoListens(log); said != fmt.Sprintf("; port %d has []", port) {
		t.Errorf("of a port at which nobody listens it says %s", said)
	}
	if said := whoListens("all is well"); said != "" {
		t.Errorf("without an error it says %s", said)
	}
}
