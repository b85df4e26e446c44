package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"rayfit.dev/rayfit/tests/rig"
)

// What is measured at a given rate: updates of 40 KB, at 1,000 per second.
const (
	steadyReview = "40 KB update"
	steadyRate   = 1000
	steadyCount  = 5_000
)

// settle is how long a server is left alone before its memory at rest is read.
const settle = 3 * time.Second

// figures are what one round says about one server.
type figures struct {
	readyMS float64
	idleMiB float64
	steady  steady
	cases   map[string]speed // by webhook path and review
}

// steady is a server at the given rate.
type steady struct {
	perSecond float64
	p50MS     float64
	p99MS     float64
	peakMiB   float64
}

// speed is a server that gets the next request as soon as it has answered one.
type speed struct {
	cpuMicros float64 // of one request
	perSecond float64
}

// measurement is what one round does.
type measurement struct {
	reviews []review
	config  *tls.Config
	quick   bool
}

// of starts the contender and measures it. Memory comes first: the most that a
// process ever held is to be that of the given rate.
func (m *measurement) of(ctx context.Context, c contender) (figures, error) {
	s, err := c.start(ctx, m.config, m.reviews[0])
	if err != nil {
		return figures{}, err
	}
	defer s.stop()
	time.Sleep(settle)
	got := figures{readyMS: milliseconds(s.ready), cases: map[string]speed{}}
	if got.idleMiB, err = rig.Memory(s.pid(), "VmRSS"); err != nil {
		return figures{}, err
	}
	if err := s.connect(ctx, m.config); err != nil {
		return figures{}, err
	}
	if got.steady, err = m.steady(ctx, s); err != nil {
		return figures{}, err
	}
	for _, path := range s.paths {
		for _, review := range m.reviews {
			if got.cases[path+" "+review.name], err = m.speed(ctx, s, path, review); err != nil {
				return figures{}, fmt.Errorf("%s %s: %w", s.name, review.name, err)
			}
		}
	}
	return got, nil
}

func (m *measurement) steady(ctx context.Context, s *server) (steady, error) {
	at := load{over: s.group, count: m.scaled(steadyCount), rate: steadyRate}
	for _, review := range m.reviews {
		if review.name == steadyReview {
			at.request = written(s.paths[0], review.body)
		}
	}
	came, err := at.run(ctx)
	if err != nil {
		return steady{}, fmt.Errorf("%s at %d per second: %w", s.name, steadyRate, err)
	}
	peak, err := rig.Memory(s.pid(), "VmHWM")
	return steady{
		perSecond: float64(at.count) / came.took.Seconds(),
		p50MS:     milliseconds(quantile(came.waits, 0.50)),
		p99MS:     milliseconds(quantile(came.waits, 0.99)),
		peakMiB:   peak,
	}, err
}

func (m *measurement) speed(ctx context.Context, s *server, path string, review review) (speed, error) {
	at := load{over: s.group, request: written(path, review.body), count: m.scaled(countOf(review))}
	if review.isApart {
		at.dial = func() (*connection, error) { return dial(ctx, s.address, m.config) }
	}
	answer, err := s.group[0].call(at.request)
	if err != nil {
		return speed{}, err
	}
	if err := isAllowed(answer); err != nil {
		return speed{}, err
	}
	before, err := rig.CPUTime(s.pid())
	if err != nil {
		return speed{}, err
	}
	came, err := at.run(ctx)
	if err != nil {
		return speed{}, err
	}
	after, err := rig.CPUTime(s.pid())
	if err != nil {
		return speed{}, err
	}
	requests := float64(at.count)
	return speed{
		cpuMicros: float64((after - before).Microseconds()) / requests,
		perSecond: requests / came.took.Seconds(),
	}, nil
}

// countOf is how many requests of a review take half a second or so on the faster
// server: fifty ticks of the clock that CPU time is read from.
func countOf(review review) int {
	switch size, _, _ := strings.Cut(review.name, " KB"); {
	case review.isApart:
		return 1_000
	case size == "7":
		return 5_000
	case size == "40":
		return 2_000
	default:
		return 100
	}
}

func (m *measurement) scaled(count int) int {
	if m.quick {
		return count / 10
	}
	return count
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
