package lab

import (
	"fmt"
	"os"
	"strings"
)

// outsideNames are the hosts of the internet that pods find.
func (l *Lab) outsideNames() ([]string, error) {
	if l.options.Outside == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(l.options.Outside)
	if err != nil {
		return nil, fmt.Errorf("list the hosts outside: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// outsideHosts are lines for hosts files: all the hosts are at the gateway of the
// pods' network.
func (l *Lab) outsideHosts() string {
	names, err := l.outsideNames()
	if err != nil || len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("198.18.%d.254 %s\n", l.state.Octet, strings.Join(names, " "))
}

// outsideArgs tell a node of the hosts, and give them a certificate.
func (l *Lab) outsideArgs() ([]string, error) {
	names, err := l.outsideNames()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	cert, key, err := l.ServingCertificate(names)
	if err != nil {
		return nil, err
	}
	if err := (certificate{cert: cert, key: key}).write(l.path("pki"), "outside"); err != nil {
		return nil, err
	}
	return []string{
		"--outside=" + l.options.Outside,
		"--outside-cert=" + l.path("pki", "outside.crt"),
		"--outside-key=" + l.path("pki", "outside.key"),
		"--outside-ca=" + l.path("pki", "ca.crt"),
	}, nil
}
