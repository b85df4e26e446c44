package lab

import (
	"context"
	"net"
	"syscall"
	"testing"
)

// A server that is told the number of a port that is held finds it free as often as it is
// started, on one address and on all.
func TestAHeldPortIsItsServersAgainAndAgain(t *testing.T) {
	port, err := HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "127.0.0.1", "", "127.0.0.2"} {
		address := &net.TCPAddr{IP: net.ParseIP(host), Port: port}
		listener, err := net.ListenTCP("tcp", address)
		if err != nil {
			t.Fatalf("a server finds the held port %d of %q taken: %v", port, host, err)
		}
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Errorf("the server at %s is not reached: %v", listener.Addr(), err)
		} else if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Whoever tries whether a number is free does not allow the reuse of an address.
func TestAHeldPortIsNotFreeWhileItsServerRestarts(t *testing.T) {
	port, err := HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range [][4]byte{{0, 0, 0, 0}, {127, 0, 0, 1}, {127, 3, 2, 1}} {
		socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Bind(socket, &syscall.SockaddrInet4{Port: port, Addr: address}); err != syscall.EADDRINUSE {
			t.Errorf("port %d at %v: %v instead of %v", port, address, err, syscall.EADDRINUSE)
		}
		if err := syscall.Close(socket); err != nil {
			t.Error(err)
		}
	}
}

// The kernel gives a port that is held to nobody who asks for any.
func TestAHeldPortIsGivenToNobodyElse(t *testing.T) {
	port, err := HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	// More than there are numbers to give.
	for range 40000 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		given := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		if given == port {
			t.Fatalf("port %d was held, and given to somebody else", port)
		}
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
