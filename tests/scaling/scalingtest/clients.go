package scalingtest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"

	"rayfit.dev/rayfit/tests/scaling"
)

// Clients send requests to a URL, each of them one after the other, without a pause. An
// answer is who has given it.
type Clients struct {
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
	answers  map[string]bool // since the load was set
	failed   []string
}

// NewClients are none yet; whoever waits for their answers is told by notify.
func NewClients(url string, notify func()) *Clients {
	c := &Clients{url: url, notify: notify, answers: map[string]bool{}}
	c.http = http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Set changes how many clients there are, and forgets who has answered. Those that are
// too many end with their request.
func (c *Clients) Set(count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want = count
	c.answers = map[string]bool{}
	for ; c.are < c.want; c.are++ {
		c.group.Go(c.send)
	}
}

// End waits until the requests that are under way have been answered.
func (c *Clients) End() {
	c.Set(0)
	c.group.Wait()
	c.cancel()
}

// send sends requests until one fails, or there are too many clients.
func (c *Clients) send() {
	for c.goesOn() {
		answer, err := c.request()
		c.took(answer, err)
		c.notify()
		if err != nil {
			return
		}
	}
}

func (c *Clients) took(answer string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed = append(c.failed, err.Error())
		c.are--
		return
	}
	c.answered++
	c.answers[answer] = true
}

// goesOn says whether a client is to send another request.
func (c *Clients) goesOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.are > c.want {
		c.are--
		return false
	}
	return true
}

func (c *Clients) request() (string, error) {
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

// AnsweredBy is nil if so many have answered since the load was set. A request that has
// failed is not made good.
func (c *Clients) AnsweredBy(count int) error {
	if err := c.Failed(); err != nil {
		return err
	}
	if answers := c.Answers(); len(answers) < count {
		return fmt.Errorf("%d have answered instead of %d: %v", len(answers), count, answers)
	}
	return nil
}

// Failed is nil if no request has failed.
func (c *Clients) Failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failed) > 0 {
		return &scaling.Lost{What: fmt.Sprintf("%d requests failed, the first with: %s", len(c.failed), c.failed[0])}
	}
	return nil
}

// Answers are who has answered since the load was set.
func (c *Clients) Answers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.answers))
}

// Results are how many requests were answered, and what came of the others.
func (c *Clients) Results() (int, []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered, c.failed
}
