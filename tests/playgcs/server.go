package playgcs

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Server plays the GCS of many clusters, each at an address of its own.
type Server struct {
	grpc    *grpc.Server
	changed func()

	mu        sync.Mutex
	byAddress map[string]*Cluster
	listeners map[string]net.Listener
	clusters  map[string]*Cluster
}

// New makes a server without clusters. changed is called after every change of
// one, and must not wait for anything.
func New(changed func()) *Server {
	s := &Server{changed: changed, byAddress: map[string]*Cluster{}, listeners: map[string]net.Listener{}, clusters: map[string]*Cluster{}}
	s.grpc = grpc.NewServer(
		grpc.ForceServerCodecV2(raw{}),
		grpc.UnknownServiceHandler(s.handle),
		// Thousands of idle connections, each of a few small messages a second.
		grpc.ReadBufferSize(2048), grpc.WriteBufferSize(2048),
	)
	return s
}

// Cluster is the played cluster of a name; it is made if there is none.
func (s *Server) Cluster(name string) *Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clusters[name] == nil {
		s.clusters[name] = newCluster(name, s.changed)
	}
	return s.clusters[name]
}

// Serve answers for a cluster at a loopback address. To serve where it does
// already is no error.
func (s *Server) Serve(c *Cluster, address string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners[address] != nil {
		s.byAddress[address] = c
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is no loopback address: %w", address, errors.Join(err, errNotLoopback))
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for the GCS of %s: %w", c.Name, err)
	}
	s.byAddress[address], s.listeners[address] = c, listener
	go func() { _ = s.grpc.Serve(counting{listener, s, address}) }()
	return nil
}

// counting tells the cluster that is played at an address of each connection.
type counting struct {
	net.Listener
	server  *Server
	address string
}

func (l counting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.server.mu.Lock()
	c := l.server.byAddress[l.address]
	l.server.mu.Unlock()
	if c != nil {
		c.connected()
	}
	return conn, nil
}

var errNotLoopback = errors.New("a played GCS listens on loopback only")

// Silence ends the listener at an address, as the end of a head pod does.
func (s *Server) Silence(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if listener := s.listeners[address]; listener != nil {
		_ = listener.Close()
		delete(s.listeners, address)
		delete(s.byAddress, address)
	}
}

// Stop ends all listeners and connections.
func (s *Server) Stop() { s.grpc.Stop() }

// handle answers any call of any service: one message in, one out.
func (s *Server) handle(_ any, stream grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(stream)
	from, ok := peer.FromContext(stream.Context())
	if !ok {
		return status.Error(codes.Internal, "a call without a connection")
	}
	s.mu.Lock()
	c := s.byAddress[from.LocalAddr.String()]
	s.mu.Unlock()
	if c == nil {
		return status.Errorf(codes.Unavailable, "no cluster is played at %s", from.LocalAddr)
	}
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	reply, err := c.call(name, request)
	if err != nil {
		return err
	}
	return stream.SendMsg(&reply)
}

// raw is a codec for messages that are encoded already.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
