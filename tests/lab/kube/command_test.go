package main

import "testing"

func TestRayArgument(t *testing.T) {
	const address = "127.0.1.3"
	for name, test := range map[string]struct{ argument, want string }{
		"a head that names no address": {
			"ulimit -n 65536; ray start --head --dashboard-host=0.0.0.0",
			"ulimit -n 65536; ray start --head --max-worker-port=0 --min-worker-port=0 --node-ip-address=127.0.1.3 --dashboard-host=127.0.1.3",
		},
		"a worker that names none": {
			"ray start --address=head:6379 --block",
			"ray start --max-worker-port=0 --min-worker-port=0 --node-ip-address=127.0.1.3 --address=head:6379 --block",
		},
		"one that does": {
			"ray start --head --node-ip-address=$POD_IP",
			"ray start --head --max-worker-port=0 --min-worker-port=0 --node-ip-address=$POD_IP",
		},
		"one whose workers have ports of its choice": {
			"ray start --node-ip-address=$POD_IP --min-worker-port=11000 --max-worker-port=11009",
			"ray start --node-ip-address=$POD_IP --min-worker-port=11000 --max-worker-port=11009",
		},
		"no start of Ray": {"echo xray start; ray status", "echo xray start; ray status"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rayArgument(test.argument, address); got != test.want {
				t.Errorf("rayArgument = %q, want %q", got, test.want)
			}
		})
	}
}
