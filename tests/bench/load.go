package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// connections at once, as many as an API server opens for a few clients.
const connections = 8

// connection is one HTTP/1.1 connection over TLS that is kept.
type connection struct {
	stream *tls.Conn
	reader *bufio.Reader
}

func dial(ctx context.Context, address string, config *tls.Config) (*connection, error) {
	stream, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &connection{stream: stream.(*tls.Conn), reader: bufio.NewReader(stream)}, nil
}

// call sends a request that was written out before and returns the answer.
func (c *connection) call(request []byte) ([]byte, error) {
	if _, err := c.stream.Write(request); err != nil {
		return nil, fmt.Errorf("send a review: %w", err)
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, fmt.Errorf("read the answer to a review: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer to a review: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("a review was answered with %s: %s", answer.Status, body)
	}
	return body, nil
}

// written is the request as it goes over the wire.
func written(path string, body []byte) []byte {
	var request bytes.Buffer
	fmt.Fprintf(&request, "POST %s?timeout=10s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\n"+
		"Content-Length: %d\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n\r\n", path, len(body))
	request.Write(body)
	return request.Bytes()
}

// isAllowed tells whether an answer allows the object without a warning:
// nothing else is comparable work.
func isAllowed(answer []byte) error {
	var review struct {
		Response struct {
			Allowed  bool     `json:"allowed"`
			Warnings []string `json:"warnings"`
		} `json:"response"`
	}
	if err := json.Unmarshal(answer, &review); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	if !review.Response.Allowed || len(review.Response.Warnings) > 0 {
		return fmt.Errorf("the review was to be allowed without a word, but the answer is %s", answer)
	}
	return nil
}

// load is what is sent, and how.
type load struct {
	over    []*connection
	dial    func() (*connection, error) // for each request, in place of those; or none
	request []byte
	count   int
	rate    float64 // per second; 0 is as fast as answers come
}

// sent is what came of a load.
type sent struct {
	took  time.Duration
	waits []time.Duration // of each request, sorted
}

// run sends the load. At a given rate a wait counts from when the request was
// due, not from when a connection was free for it: a stall of the server is
// seen in all requests that it delays.
func (l load) run(ctx context.Context) (sent, error) {
	var (
		next    atomic.Int64
		workers sync.WaitGroup
		waits   = make([]time.Duration, l.count)
		errs    = make([]error, len(l.over))
		begin   = time.Now()
	)
	for worker, conn := range l.over {
		workers.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= l.count || ctx.Err() != nil {
					return
				}
				due := l.due(begin, n)
				time.Sleep(time.Until(due))
				if errs[worker] = l.send(conn); errs[worker] != nil {
					return
				}
				waits[n] = time.Since(due)
			}
		})
	}
	workers.Wait()
	took := time.Since(begin)
	for _, err := range append(errs, ctx.Err()) {
		if err != nil {
			return sent{}, err
		}
	}
	slices.Sort(waits)
	return sent{took: took, waits: waits}, nil
}

// send sends one request and reads its answer.
func (l load) send(conn *connection) error {
	if l.dial != nil {
		fresh, err := l.dial()
		if err != nil {
			return fmt.Errorf("open a connection: %w", err)
		}
		defer fresh.stream.Close()
		conn = fresh
	}
	_, err := conn.call(l.request)
	return err
}

func (l load) due(begin time.Time, n int) time.Time {
	if l.rate == 0 {
		return time.Now()
	}
	return begin.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
}

// quantile of sorted waits.
func quantile(waits []time.Duration, q float64) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	return waits[min(int(q*float64(len(waits))), len(waits)-1)]
}
