package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Lab is a started cluster.
type Lab struct {
	options Options
	state   state
	api     *client
	say     *progress

	// These end the service proxy, the machines and the gateways if they run in this process.
	stopProxy    func()
	stopMachines func()
	stopGateways func()
	stopOnce     sync.Once
	stopErr      error
}

// Dir is the directory that holds everything of the lab.
func (l *Lab) Dir() string { return l.options.Dir }

// URL is the API server's address.
func (l *Lab) URL() string { return "https://" + loopback(l.state.Ports.APIServer) }

func (l *Lab) path(parts ...string) string {
	return filepath.Join(append([]string{l.options.Dir}, parts...)...)
}

// Start builds what is missing and starts a lab. It returns when everything
// that the options ask for is ready. On an error nothing is left running; the
// logs stay in the directory.
func Start(ctx context.Context, options Options) (*Lab, error) {
	options, err := options.validated()
	if err != nil {
		return nil, err
	}
	l := &Lab{options: options, say: newProgress(options.Progress)}
	begin := time.Now()
	if err := l.build(ctx); err != nil {
		return nil, err
	}
	if err := l.prepareDir(); err != nil {
		return nil, err
	}
	if err := l.startAll(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the lab in %s: %w", l.Dir(), err), l.Stop())
	}
	l.say.step("lab is up after %s", time.Since(begin).Round(100*time.Millisecond))
	return l, nil
}

// Open returns the lab that another process started in dir.
func Open(dir string) (*Lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolve directory %q: %w", dir, err)
	}
	l := &Lab{options: Options{Dir: dir}, say: newProgress(nil)}
	if err := l.loadState(); err != nil {
		return nil, err
	}
	l.options.Dir = dir
	// A lab that died while starting may have no credentials yet; then only
	// stopping it makes sense, and that needs no client.
	if api, err := l.newClient(); err == nil {
		l.api = api
	}
	return l, nil
}

func (l *Lab) startAll(ctx context.Context) error {
	octet, listener, err := claimNetwork()
	if err != nil {
		return err
	}
	defer listener.Close()
	l.state.Octet = octet
	if l.state.Ports, err = holdPorts(l.options.Nodes); err != nil {
		return err
	}
	if err := l.saveState(); err != nil {
		return err
	}
	if err := l.startControlPlane(ctx, listener); err != nil {
		return err
	}
	if l.options.AdmissionOnly {
		return nil
	}
	if err := l.startScheduler(); err != nil {
		return err
	}
	return l.startAddOns(ctx)
}

func (l *Lab) startControlPlane(ctx context.Context, listener *net.UnixListener) error {
	if err := l.writeCredentials(); err != nil {
		return err
	}
	if err := l.writeEgress(); err != nil {
		return err
	}
	var err error
	if l.api, err = l.newClient(); err != nil {
		return err
	}
	if err := l.startServers(ctx, listener); err != nil {
		return err
	}
	l.say.step("API server is ready at %s", l.URL())
	if l.hasControllerManager() {
		if err := l.startControllerManager(); err != nil {
			return err
		}
		if err := l.waitServiceAccount(ctx, "default"); err != nil {
			return err
		}
	}
	return l.createCRDs(ctx, l.state.KubeRayCRDs)
}

// startServers starts what everything else talks to.
func (l *Lab) startServers(ctx context.Context, listener *net.UnixListener) error {
	if err := l.startEtcd(); err != nil {
		return err
	}
	if err := l.startProxy(listener); err != nil {
		return err
	}
	return l.startAPIServer(ctx)
}

func (l *Lab) startAddOns(ctx context.Context) error {
	if err := l.startNodes(ctx); err != nil {
		return err
	}
	if l.options.has(WithCertManager) {
		if err := l.startCertManager(ctx); err != nil {
			return err
		}
	}
	// The operator looks for the Gateway API when it starts.
	if l.options.has(WithGateway) {
		if err := l.startGateways(ctx); err != nil {
			return err
		}
	}
	if l.options.has(WithOperator) {
		if err := l.startOperator(ctx); err != nil {
			return err
		}
	}
	if l.options.has(WithVPA) {
		if err := l.startVPA(ctx); err != nil {
			return err
		}
	}
	if l.options.has(WithKarpenter) {
		if err := l.startKarpenter(ctx); err != nil {
			return err
		}
	}
	if l.options.has(WithKueue) {
		return l.startKueue(ctx)
	}
	return nil
}

// Stop ends every process of the lab. Files and logs stay. It may be called
// more than once.
func (l *Lab) Stop() error {
	l.stopOnce.Do(func() { l.stopErr = l.stopAll() })
	return l.stopErr
}

// stopAll ends clients before the API server, and the API server before etcd:
// without etcd it would neither end on SIGTERM nor give its port back.
func (l *Lab) stopAll() error {
	for _, stop := range []func(){l.stopMachines, l.stopGateways} {
		if stop != nil {
			stop()
		}
	}
	var clients []string
	for _, name := range l.Components() {
		if name != etcd && name != apiServer && name != serviceProxy {
			clients = append(clients, name)
		}
	}
	err := errors.Join(
		l.stop(stopTimeout, clients...),
		l.stop(2*time.Second, apiServer),
		l.stop(2*time.Second, serviceProxy),
	)
	if l.stopProxy != nil {
		l.stopProxy()
	}
	return errors.Join(err, l.stop(2*time.Second, etcd), killMarked(l.Dir()))
}

// Down stops the lab in dir, also one whose start was interrupted at any
// point, and one whose state file is gone.
func Down(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("resolve directory %q: %w", dir, err)
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("no lab in %s: %w", dir, err)
	}
	return (&Lab{options: Options{Dir: dir}, say: newProgress(nil)}).Stop()
}

// waitServiceAccount waits until pods can be made in a namespace.
func (l *Lab) waitServiceAccount(ctx context.Context, namespace string) error {
	what := "wait for the service account of namespace " + namespace
	return Eventually(ctx, startTimeout, what, func() error {
		if err := l.ended(controllerManager); err != nil {
			return err
		}
		_, err := l.api.get(ctx, "/api/v1/namespaces/"+namespace+"/serviceaccounts/default")
		return err
	})
}
