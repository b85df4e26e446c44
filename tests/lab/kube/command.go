package main

import (
	"fmt"
	"net"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// rayfitPath is where a rayfit image has its binary.
const rayfitPath = "/rayfit"

// command is what a container runs: Path is executed with Argv, whose first
// element need not be the path.
type command struct {
	Path string
	Argv []string
	Env  []string
}

// commandOf turns a container's image, command and arguments into what is
// started here. It is empty for images of which only the name is known.
func (o containerOptions) commandOf(c *container) (command, error) {
	argv := append(append([]string{}, c.config.Command...), c.config.Args...)
	env := o.environment(c)
	if isRayfit(c.config.Image) {
		if o.rayfit == "" {
			return command{}, fmt.Errorf("image %s is Rayfit's, and the lab was given no --rayfit-binary", c.config.Image.GetImage())
		}
		return rayfitCommand(c.config, env, c.address), nil
	}
	if len(c.config.Command) == 0 {
		return command{}, nil
	}
	for i := range argv {
		argv[i] = o.argument(argv[i], c.address)
	}
	return command{Path: argv[0], Argv: argv, Env: env}, nil
}

func isRayfit(image *cri.ImageSpec) bool {
	name := image.GetUserSpecifiedImage()
	if name == "" {
		name = image.GetImage()
	}
	return strings.Contains(name, "rayfit")
}

// rayfitCommand follows the image: its entrypoint is the binary, and its
// /bin/bash is the binary too, called bash. Webhooks that do not say where to
// listen get the pod's address: on every address, replicas would meet.
func rayfitCommand(config *cri.ContainerConfig, env []string, address string) command {
	argv := []string{"rayfit"}
	if len(config.Command) > 0 {
		argv = append([]string{path.Base(config.Command[0])}, config.Command[1:]...)
	}
	argv = append(argv, config.Args...)
	if slices.Contains(argv, "serve") && !slices.ContainsFunc(argv, isBind) {
		argv = append(argv, "--bind="+address)
	}
	return command{Path: rayfitPath, Argv: argv, Env: env}
}

func isBind(argument string) bool {
	return argument == "--bind" || strings.HasPrefix(argument, "--bind=")
}

// argument is what a container is started with for what its pod says.
func (o containerOptions) argument(given, address string) string {
	if o.link != "" {
		return given // nothing else is at its ports
	}
	return rayArgument(given, address)
}

// environment is the container's, with what differs here: Ray comes from a virtual
// environment, and where pods have no network of their own, the API server is on
// loopback at a port of its own.
func (o containerOptions) environment(c *container) []string {
	searchPath := os.Getenv("PATH")
	if o.path != "" {
		searchPath = o.path + ":" + searchPath
	}
	env := []string{"PATH=" + searchPath, "HOME=/tmp", "LANG=C.UTF-8", "POD_IP=" + c.address, "HOSTNAME=" + c.sandbox.GetHostname()}
	if o.extraEnv != "" {
		env = append(env, o.extraEnv)
	}
	env = append(env, o.outside.environment()...)
	host, port, _ := net.SplitHostPort(o.apiServer)
	for _, e := range c.config.Envs {
		value := string(e.Value)
		switch {
		case o.link != "":
		case e.Key == "KUBERNETES_SERVICE_HOST":
			value = host
		case e.Key == "KUBERNETES_SERVICE_PORT", e.Key == "KUBERNETES_SERVICE_PORT_HTTPS":
			value = port
		}
		env = append(env, e.Key+"="+value)
	}
	return env
}

// rayArgument changes the parts of KubeRay's generated command line on which
// several Ray nodes would meet on one host: ports that Ray binds on every
// address although it knows the node's. A node that is told no address is told
// its pod's: Ray would find the host's, at which nobody looks for it.
//
// Each raylet counts its workers' ports up from 10002 and tries whether one is free
// some time before its worker binds it, and gRPC shares ports. So of two raylets whose
// workers start at the same moment, both workers would have one port, and the task of
// one would be sent to the other and be lost. Port 0 lets the kernel choose.
func rayArgument(argument, address string) string {
	offset := addressOffset(address)
	argument = strings.NewReplacer(
		"--metrics-export-port=8080", "--metrics-export-port="+strconv.Itoa(50000+offset),
		"--dashboard-host=0.0.0.0", "--dashboard-host="+address,
	).Replace(argument)
	for _, option := range []string{"--node-ip-address=" + address, "--min-worker-port=0", "--max-worker-port=0"} {
		name, _, _ := strings.Cut(option, "=")
		if address != "" && !strings.Contains(argument, name) {
			argument = rayStart.ReplaceAllString(argument, "${0} "+option)
		}
	}
	return argument
}

// rayStart is where a shell's text starts Ray.
var rayStart = regexp.MustCompile(`(^|[\s;&|(])ray start(\s+--head)?\b`)

// addressOffset maps 127.X.N.P to a number below 10000 that differs for the
// pods of a lab, as long as it has fewer than 39 nodes with Ray processes.
func addressOffset(address string) int {
	ip := net.ParseIP(address).To4()
	if ip == nil {
		return 0
	}
	return (int(ip[2])*256 + int(ip[3]) + int(ip[1])*2048) % 10000
}
