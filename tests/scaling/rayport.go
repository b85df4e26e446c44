package scaling

import (
	"context"
	"fmt"
	"time"

	"rayfit.dev/rayfit/tests/lab"
)

// portPatience is how long RayPort may be another test's.
const portPatience = 10 * time.Minute

// takePort finds a port for the cluster's GCS. A GCS listens on all addresses, so on
// the whole machine one cluster at a time can have RayPort: the GCS of a second one
// would end, and its nodes would join the first.
func (w *World) takePort(ctx context.Context, c *Cluster) (err error) {
	if c.Mode == Ray && c.Port == 0 {
		c.Port = RayPort
	}
	if c.Port == 0 {
		c.Port, err = lab.HoldPort()
		return err
	}
	if c.Port != RayPort {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, portPatience)
	defer cancel()
	release, err := lab.ClaimPort(ctx, RayPort)
	if err != nil {
		return fmt.Errorf("wait for the port of the GCS of %s: %w", c.Name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rayPort = claim{c.Name, release}
	return nil
}

// claim is RayPort while it is a cluster's.
type claim struct {
	cluster string
	release func()
}

// givePort lets go of RayPort if it is a cluster's, or, without a name, anybody's.
func (w *World) givePort(cluster string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rayPort.release != nil && (cluster == "" || cluster == w.rayPort.cluster) {
		w.rayPort.release()
		w.rayPort = claim{}
	}
}
