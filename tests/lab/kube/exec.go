package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// ExecSync runs a command in a container for probes and lifecycle hooks.
func (r *processRuntime) ExecSync(ctx context.Context, id string, argv []string, timeout time.Duration) ([]byte, []byte, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var stdout, stderr bytes.Buffer
	err := r.execute(ctx, id, argv, nil, &stdout, &stderr)
	return stdout.Bytes(), stderr.Bytes(), err
}

// execute runs a command in the namespaces of a container's first process. A
// non-zero exit is a utilexec.CodeExitError, as the kubelet expects it.
func (r *processRuntime) execute(ctx context.Context, id string, argv []string, in io.Reader, out, errOut io.Writer) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	process := r.processOf(c)
	if process == nil {
		return fmt.Errorf("container %s has no process", id)
	}
	for i := range argv {
		argv[i] = r.options.argument(argv[i], c.address)
	}
	started := make(chan error, 1)
	var cmd *exec.Cmd
	go func() {
		// The thread's namespaces are changed for good: it stays locked and
		// ends with this goroutine.
		runtime.LockOSThread()
		var err error
		cmd, err = startInside(ctx, process.pid, argv, r.options.environment(c), in, out, errOut)
		started <- err
	}()
	if err := <-started; err != nil {
		return err
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: int(exitCode(exit.ProcessState))}
	}
	return err
}

func startInside(ctx context.Context, pid int, argv, env []string, in io.Reader, out, errOut io.Writer) (*exec.Cmd, error) {
	if err := enterNamespaces(pid); err != nil {
		return nil, err
	}
	program, err := lookPath(argv[0], env)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = argv
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errOut
	return cmd, cmd.Start()
}

func enterNamespaces(pid int) error {
	namespaces := []struct {
		file string
		kind int
	}{{"pid", unix.CLONE_NEWPID}, {"net", unix.CLONE_NEWNET}, {"mnt", unix.CLONE_NEWNS}}
	// A thread that shares its root with others may not change it.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("separate a thread: %w", err)
	}
	var files []*os.File
	for _, n := range namespaces {
		file, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, n.file))
		if err != nil {
			return fmt.Errorf("find the container's namespaces: %w", err)
		}
		defer file.Close()
		files = append(files, file)
	}
	for i, n := range namespaces {
		if err := unix.Setns(int(files[i].Fd()), n.kind); err != nil {
			return fmt.Errorf("enter the container's %s namespace: %w", n.file, err)
		}
	}
	return nil
}

// serveStreams serves kubectl exec and port-forward; the kubelet forwards to it.
func (r *processRuntime) serveStreams() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for exec: %w", err)
	}
	config := streaming.DefaultConfig
	config.Addr = listener.Addr().String()
	if r.streaming, err = streaming.NewServer(config, streams{r}); err != nil {
		return fmt.Errorf("serve exec: %w", err)
	}
	server := &http.Server{Handler: r.streaming, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return nil
}

func (r *processRuntime) Exec(_ context.Context, request *cri.ExecRequest) (*cri.ExecResponse, error) {
	return r.streaming.GetExec(request)
}

func (r *processRuntime) PortForward(_ context.Context, request *cri.PortForwardRequest) (*cri.PortForwardResponse, error) {
	return r.streaming.GetPortForward(request)
}

// streams is what the streaming server calls.
type streams struct{ runtime *processRuntime }

func (s streams) Exec(ctx context.Context, id string, argv []string, in io.Reader, out, errOut io.WriteCloser, tty bool, _ <-chan remotecommand.TerminalSize) error {
	if tty {
		return errors.New("the lab's containers have no terminals: call kubectl exec without -t")
	}
	return s.runtime.execute(ctx, id, argv, in, out, errOut)
}

func (s streams) Attach(context.Context, string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan remotecommand.TerminalSize) error {
	return errors.New("the lab cannot attach to containers: use kubectl logs or exec")
}

func (s streams) PortForward(ctx context.Context, sandbox string, port int32, stream io.ReadWriteCloser) error {
	address := fmt.Sprintf("%s:%d", s.runtime.addresses.of(sandbox), port)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect to the pod: %w", err)
	}
	defer conn.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]io.ReadWriter{{conn, stream}, {stream, conn}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
	return nil
}
