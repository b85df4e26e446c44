package libraries_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
)

// serve deploys an application that scales with its load, and sends it requests all
// the time: few, many, and few again. Pods grow and come for it, and shrink and go,
// and no request fails.
func (s scene) serve(t *testing.T) {
	const replicas = 4
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.w.Head(s.c)
	if err != nil {
		t.Fatal(err)
	}
	d := s.drive(t)
	d.do(t, fmt.Sprintf("deploy(%d, %d)", port, replicas))
	defer func() {
		if t.Failed() { // what it needs would be in the way of the next library
			_, _ = d.EvalWithin(context.Background(), patience, script+"\nend_serve()")
		}
	}()
	load := newClients(fmt.Sprintf("http://%v:%d/", head.Get("status.podIP"), port), s.w.Notify)
	defer load.end()
	waves := 1
	if full() {
		waves = 3
	}
	for range waves {
		load.set(1)
		s.until(t, "one small worker for one replica", func() error { return s.exactly(1, 1) })
		// Twice as many as the replicas are wanted for: where clients get on slowly, fewer
		// of them wait for an answer at a time.
		load.set(4 * replicas)
		begin := time.Now()
		s.until(t, "all replicas answer", func() error { return load.answeredBy(replicas) })
		t.Logf("%d replicas answer %s after the load", replicas, time.Since(begin).Round(time.Millisecond))
		if err := s.atLeast(2, replicas); err != nil {
			t.Error(err)
		}
	}
	load.set(1)
	s.until(t, "one small worker for one replica", func() error { return s.exactly(1, 1) })
	load.end()
	answered, failed := load.results()
	t.Logf("%d requests were answered", answered)
	if len(failed) > 0 {
		t.Errorf("%d requests failed: %v", len(failed), failed)
	}
	d.do(t, "end_serve()")
	s.rests(t)
}

// clients send requests, each of them one after the other.
type clients struct {
	url    string
	notify func()
	http   http.Client
	ctx    context.Context
	cancel func()
	group  sync.WaitGroup

	mu       sync.Mutex
	want     int // how many clients there are to be
	are      int
	answered int
	replicas map[string]bool // that have answered since the load was set
	failed   []string
}

func newClients(url string, notify func()) *clients {
	c := &clients{url: url, notify: notify, replicas: map[string]bool{}}
	c.http = http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// set changes how many clients there are. Those that are too many end with their
// request.
func (c *clients) set(count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want = count
	c.replicas = map[string]bool{}
	for ; c.are < c.want; c.are++ {
		c.group.Go(c.send)
	}
}

// end waits until the requests that are under way have been answered.
func (c *clients) end() {
	c.set(0)
	c.group.Wait()
	c.cancel()
}

// send sends requests until one fails, or there are too many clients.
func (c *clients) send() {
	for c.goesOn() {
		replica, err := c.request()
		c.took(replica, err)
		c.notify()
		if err != nil {
			return
		}
	}
}

func (c *clients) took(replica string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed = append(c.failed, err.Error())
		c.are--
		return
	}
	c.answered++
	c.replicas[replica] = true
}

// goesOn says whether a client is to send another request.
func (c *clients) goesOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.are > c.want {
		c.are--
		return false
	}
	return true
}

func (c *clients) request() (string, error) {
	request, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// answeredBy is nil if so many replicas have answered since the load was set.
func (c *clients) answeredBy(count int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failed) > 0 {
		return fmt.Errorf("%d requests failed, the first with: %s", len(c.failed), c.failed[0])
	}
	if len(c.replicas) < count {
		return fmt.Errorf("%d replicas have answered instead of %d", len(c.replicas), count)
	}
	return nil
}

// results are how many requests were answered, and what came of the others.
func (c *clients) results() (int, []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered, c.failed
}
