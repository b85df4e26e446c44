package main

import (
	"fmt"
	"sync"
)

// addresses gives each pod a loopback address of its own, so that pods can use
// the same ports. Addresses go round, so that a new pod does not get that of
// the pod that has just ended.
type addresses struct {
	mu      sync.Mutex
	network string
	last    int
	owner   map[int]string
	byPod   map[string]int
}

func newAddresses(network string) *addresses {
	return &addresses{network: network, owner: map[int]string{}, byPod: map[string]int{}}
}

func (a *addresses) take(pod string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range lastPod {
		a.last = a.last%lastPod + 1
		if a.owner[a.last] == "" {
			a.owner[a.last] = pod
			a.byPod[pod] = a.last
			return a.format(a.last), nil
		}
	}
	return "", fmt.Errorf("network %s.0/24 has no address left for another pod", a.network)
}

func (a *addresses) of(pod string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.format(a.byPod[pod])
}

func (a *addresses) give(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.owner, a.byPod[pod])
	delete(a.byPod, pod)
}

func (a *addresses) format(n int) string { return fmt.Sprintf("%s.%d", a.network, n) }
