package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWeightsDecide(t *testing.T) {
	routes := []route{
		{Prefix: "/", Backends: []backend{{75, []string{"old"}}, {25, []string{"new"}}, {0, []string{"off"}}}},
		{Prefix: "/a", Backends: []backend{{1, nil}}},
		{Prefix: "/off", Backends: []backend{{0, []string{"off"}}}},
	}
	got := map[string]int{}
	for at := range 100 {
		endpoint, err := choose(routes, "/fruit", func(n int) int { return min(at, n-1) })
		if err != nil {
			t.Fatal(err)
		}
		got[endpoint]++
	}
	if got["old"] != 75 || got["new"] != 25 || len(got) != 2 {
		t.Errorf("of 100 numbers: %v", got)
	}
	first := func(int) int { return 0 }
	for _, path := range []string{"/a", "/a/b", "/off"} {
		if _, err := choose(routes, path, first); !errors.Is(err, errNoEndpoint) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if endpoint, err := choose(routes, "/ab", first); endpoint != "old" || err != nil {
		t.Errorf("a prefix is whole elements: %s, %v", endpoint, err)
	}
	if _, err := choose(nil, "/", first); !errors.Is(err, errNoRoute) {
		t.Errorf("without routes: %v", err)
	}
}

func TestRequestsFollowTheRoutes(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write([]byte(r.Method + " " + r.URL.Path + " " + string(body)))
	}))
	defer backend.Close()
	g := newGateway(func(int) int { return 0 })
	ask := func() (int, string) {
		answer := httptest.NewRecorder()
		g.forward(answer, httptest.NewRequest(http.MethodPost, "/fruit/x", strings.NewReader("two")))
		return answer.Code, answer.Body.String()
	}
	if code, _ := ask(); code != http.StatusNotFound {
		t.Errorf("without routes: %d", code)
	}
	put := httptest.NewRecorder()
	routes := `[{"prefix": "/", "backends": [{"weight": 1, "endpoints": ["` + strings.TrimPrefix(backend.URL, "http://") + `"]}]}]`
	g.learn(put, httptest.NewRequest(http.MethodPut, "/routes", strings.NewReader(routes)))
	if put.Code != http.StatusOK {
		t.Fatal(put.Code, put.Body)
	}
	if code, said := ask(); code != http.StatusOK || said != "POST /fruit/x two" {
		t.Errorf("%d: %s", code, said)
	}
}
