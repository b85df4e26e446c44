package scaling

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// TaskGate is where tasks check in when they begin, and where they stay until they
// are let go: a worker is busy for exactly as long as a test wants it to be.
type TaskGate struct {
	URL string

	server  *http.Server
	changed func()
	mu      sync.Mutex
	tasks   map[string]*Task
	free    map[string]bool // batches that are not held (any more)
}

// Task is one task, actor or bundle that has begun to work.
type Task struct {
	Name, Batch, Pod string
	Began            time.Time
	// Ended is when it ended, zero while it works.
	Ended time.Time
	// Lost is true if it ended without having been let go: somebody ended its
	// process.
	Lost bool

	let chan struct{}
}

func newTaskGate(changed func()) (*TaskGate, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for tasks: %w", err)
	}
	b := &TaskGate{URL: "http://" + listener.Addr().String(), changed: changed, tasks: map[string]*Task{}, free: map[string]bool{}}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: Patience}
	go func() { _ = b.server.Serve(listener) }()
	return b, nil
}

// close lets every task go.
func (b *TaskGate) close() {
	b.mu.Lock()
	for _, t := range b.tasks {
		b.letGo(t)
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = b.server.Shutdown(ctx)
	_ = b.server.Close()
}

// ServeHTTP holds a task: it answers when the task's batch is let go.
func (b *TaskGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	t := &Task{Name: query.Get("name"), Batch: query.Get("batch"), Pod: query.Get("pod"), Began: time.Now(), let: make(chan struct{})}
	b.mu.Lock()
	b.tasks[t.Name] = t
	if b.free[t.Batch] {
		b.letGo(t)
	}
	b.mu.Unlock()
	b.changed()
	select {
	case <-t.let:
		b.end(t, false)
		fmt.Fprintln(w, "go")
	case <-r.Context().Done():
		b.end(t, true)
	}
}

func (b *TaskGate) end(t *Task, lost bool) {
	b.mu.Lock()
	t.Ended, t.Lost = time.Now(), lost
	b.mu.Unlock()
	b.changed()
}

func (b *TaskGate) letGo(t *Task) {
	select {
	case <-t.let:
	default:
		close(t.let)
	}
}

// Release lets the tasks of a batch end, also those that begin only later.
func (b *TaskGate) Release(batch string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free[batch] = true
	for _, t := range b.tasks {
		if t.Batch == batch {
			b.letGo(t)
		}
	}
}

// ReleaseTask lets one task end, by its name.
func (b *TaskGate) ReleaseTask(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.tasks[name]; t != nil {
		b.letGo(t)
	}
}

// Tasks are the tasks of a batch that have begun, in the order in which they did.
func (b *TaskGate) Tasks(batch string) []Task {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []Task
	for _, t := range b.tasks {
		if t.Batch == batch {
			found = append(found, *t)
		}
	}
	slices.SortFunc(found, func(x, y Task) int {
		if order := x.Began.Compare(y.Began); order != 0 {
			return order
		}
		return strings.Compare(x.Name, y.Name)
	})
	return found
}

// AtWork is nil if exactly so many tasks of a batch are at work. A task that was
// ended by somebody else can never be at work again.
func (b *TaskGate) AtWork(batch string, count int) error {
	working := 0
	for _, t := range b.Tasks(batch) {
		if t.Lost {
			return &Lost{fmt.Sprintf("task %s on pod %s was ended at its work", t.Name, t.Pod)}
		}
		if t.Ended.IsZero() {
			working++
		}
	}
	if working != count {
		return fmt.Errorf("%d tasks of batch %q are at work instead of %d", working, batch, count)
	}
	return nil
}
