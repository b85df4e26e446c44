package main

import (
	"fmt"
	"net"
	"net/http"
	"time"
)

// outsideAuthority is where containers find the authority of the hosts outside.
const outsideAuthority = "/lab/outside-ca.crt"

// outsideOptions say which hosts of the internet pods find, and where.
type outsideOptions struct {
	folder           string // per host a folder with what it serves; none if empty
	certificate, key string
	authority        string
}

// environment makes Python, and programs that use OpenSSL by its defaults, trust
// the authority.
func (o outsideOptions) environment() []string {
	if o.folder == "" {
		return nil
	}
	return []string{"REQUESTS_CA_BUNDLE=" + outsideAuthority}
}

// mounts show it to a container.
func (o outsideOptions) mounts() []bindMount {
	if o.folder == "" {
		return nil
	}
	return []bindMount{{Source: o.authority, Target: outsideAuthority, ReadOnly: true}}
}

// serveOutside answers for the hosts at the gateway of the pods' network.
func serveOutside(listener net.Listener, o outsideOptions) error {
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			host, _, err := net.SplitHostPort(r.Host)
			if err != nil {
				host = r.Host
			}
			root := http.Dir(o.folder)
			file, err := root.Open("/" + host + r.URL.Path)
			if err != nil {
				http.NotFound(w, r)
				return
			}
			defer file.Close()
			info, err := file.Stat()
			if err != nil || info.IsDir() {
				http.NotFound(w, r)
				return
			}
			http.ServeContent(w, r, info.Name(), info.ModTime(), file)
		}),
	}
	if err := server.ServeTLS(listener, o.certificate, o.key); err != nil {
		return fmt.Errorf("serve the hosts outside: %w", err)
	}
	return nil
}
