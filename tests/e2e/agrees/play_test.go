package agrees_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

const (
	// late is how much longer than simulated a script may take as a whole.
	late = 60 * time.Second
	// rest is for how long nothing must happen after the last event.
	rest = 8 * time.Second
)

// play is a script that is being played.
type play struct {
	*stage
	script script
	c      scaling.Cluster
	d      *scaling.Driver
	seen   *seen

	mu     sync.Mutex // of the driver, and of what follows
	ending map[string]bool
	errs   []error
	begin  time.Time
	undo   []func()
}

// act is something that the script does from outside.
type act struct {
	at time.Duration
	do func(context.Context) error
}

// neverStarted says that Ray did not start in a pod, for which another one was made.
type neverStarted struct{ pod string }

func (e *neverStarted) Error() string { return "Ray did not start in pod " + e.pod }

// play plays a script from beginning to end, in a cluster of its own that is gone
// afterwards. What was seen is nil where the script did not begin.
func (s *stage) play(ctx context.Context, one script, common settings, attempt int) (seen *seen, err error) {
	c := one.cluster(common)
	if attempt > 1 {
		// What is remembered of the cluster of before goes by its name.
		c.Name = fmt.Sprintf("%s-%d", c.Name, attempt)
	}
	if err := s.Create(ctx, c); err != nil {
		return nil, err
	}
	defer func() {
		// Not the test's context, which may have ended.
		err = errors.Join(err, s.Delete(context.WithoutCancel(ctx), *c))
	}()
	d, err := s.Drive(ctx, *c)
	if err != nil {
		return nil, err
	}
	p := &play{stage: s, script: one, c: *c, d: d, seen: newSeen(one), ending: map[string]bool{}}
	defer func() { p.d.Close() }()
	defer p.end()
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	return p.seen, p.run(ctx)
}

// settle waits until the controller looks after the cluster, and the workers that
// it has from the first have joined.
func (p *play) settle(ctx context.Context) error {
	least := 0
	for _, g := range p.script.groups {
		least += g.Min * max(g.Hosts, 1)
	}
	err := p.Until(ctx, "the cluster is looked after", func() error {
		object, err := p.RayCluster(p.c)
		if err != nil {
			return err
		}
		if owner := object.Get("metadata.annotations[rayfit.dev/scaled-by]"); owner == nil {
			return errors.New("nobody has claimed it")
		}
		return p.HasWorkers(p.c, "", least)
	})
	if err != nil {
		return err
	}
	joined := fmt.Sprintf(`while sum(node["Alive"] for node in ray.nodes()) <= %d: time.sleep(0.1)`, least)
	if err := p.d.Do(ctx, joined); err != nil || least == 0 {
		return err
	}
	// The first process that works for Ray in a pod takes seconds to start.
	warm := p.c.Name + ":warm"
	if err := p.d.Do(ctx, fmt.Sprintf(`hold("warm", %d, num_cpus=1)`, least)); err != nil {
		return err
	}
	if err := p.Until(ctx, "the workers are warm", func() error { return p.TaskGate.AtWork(warm, least) }); err != nil {
		return err
	}
	p.TaskGate.Release(warm)
	return p.d.Do(ctx, `ray.get(kept.pop("warm")); time.sleep(2)`)
}

// run does what the script says, and looks until everything is done that the
// simulator does, and then whether more is.
func (p *play) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	early := len(p.NeverStarted(p.c, ""))
	p.begin = time.Now()
	p.seen.start(p.World, p.c, p.begin)
	acted := make(chan error, 1)
	go func() {
		acted <- p.act(ctx)
		p.Notify()
	}()
	last := 0.0
	for _, d := range p.script.events {
		last = max(last, d.at)
	}
	patience := time.Duration(last*float64(time.Second)) + late
	var failed error
	over := false
	waited := p.UntilWithin(ctx, patience, "everything is done that was simulated", func() error {
		select {
		case failed = <-acted:
			over = true
		default:
		}
		if failed != nil {
			return &scaling.Lost{What: failed.Error()}
		}
		p.look(ctx)
		if never := p.NeverStarted(p.c, ""); len(never) > early {
			failed = &neverStarted{never[len(never)-1].Name()}
			return &scaling.Lost{What: failed.Error()}
		}
		if n := len(p.script.events); !over || len(p.seen.events) < n {
			return fmt.Errorf("%d events of %d", len(p.seen.events), n)
		}
		return nil
	})
	if waited == nil {
		resting, stop := context.WithTimeout(ctx, rest)
		defer stop()
		_ = p.UntilWithin(resting, rest, "rest", func() error {
			p.look(ctx)
			return errors.New("resting")
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(append(p.errs, failed)...)
}

// act does one thing after the other, each at its time.
func (p *play) act(ctx context.Context) error {
	for _, a := range p.acts() {
		select {
		case <-time.After(time.Until(p.begin.Add(a.at))):
		case <-ctx.Done():
			return nil
		}
		if err := a.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) acts() []act {
	var acts []act
	for _, b := range p.script.batches() {
		acts = append(acts, act{seconds(b.At), func(ctx context.Context) error { return p.drive(ctx, b.ask()) }})
	}
	for _, f := range p.script.faults {
		begin, end := p.fault(f)
		acts = append(acts, act{seconds(f.At), begin})
		if end != nil {
			acts = append(acts, act{seconds(f.At + f.Seconds), end})
		}
	}
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	return acts
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// drive lets the driver do something; it does one thing at a time.
func (p *play) drive(ctx context.Context, code string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.d.Do(ctx, code)
}

// look tells what was done, and ends the jobs whose time is over.
//
// That is when the simulated ones end: how long a process takes to start on this
// machine is to show in when jobs begin, and not in all that follows.
func (p *play) look(ctx context.Context) {
	p.seen.look(p.World, p.c)
	for _, b := range p.script.batches() {
		ends := p.script.ends(b)
		tasks := p.TaskGate.Tasks(p.c.Name + ":" + b.name)
		if b.Bundles != "" {
			if len(tasks) < b.tasks() {
				continue
			}
			tasks = tasks[:1]
		}
		for i, task := range tasks {
			// One that was lost begins anew, under the same name.
			key := task.Name + task.Began.String()
			if task.Ended.IsZero() && !p.ending[key] && i < len(ends) {
				p.ending[key] = true
				time.AfterFunc(time.Until(p.begin.Add(ends[i])), func() { p.endOf(ctx, b, task) })
			}
		}
	}
}

// endOf ends a job: that is a task, or all tasks of a placement group.
func (p *play) endOf(ctx context.Context, b batch, task scaling.Task) {
	if !b.Actor && b.Bundles == "" {
		for _, now := range p.TaskGate.Tasks(task.Batch) {
			if now.Name == task.Name && now.Began.Equal(task.Began) {
				p.TaskGate.ReleaseTask(task.Name)
			}
		}
		return
	}
	p.TaskGate.Release(task.Batch)
	// What actors and placement groups hold is given back when they are forgotten.
	if err := p.drive(ctx, fmt.Sprintf("drop(%q)", b.name)); err != nil && ctx.Err() == nil {
		p.mu.Lock()
		p.errs = append(p.errs, err)
		p.mu.Unlock()
	}
}

// end undoes what is left of the script's faults.
func (p *play) end() {
	for _, undo := range p.undo {
		undo()
	}
}
