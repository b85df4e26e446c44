package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// WatchEvent is one line of a watch: Type is ADDED, MODIFIED, DELETED, or
// BOOKMARK after the objects that were there at the start.
type WatchEvent[T any] struct {
	Type   string `json:"type"`
	Object T      `json:"object"`
}

// watch reports all objects at an API path, then a bookmark, then their changes:
// the streaming form of list and watch. It returns when the watch breaks.
func watch[T any](ctx context.Context, api *client, path string, handle func(WatchEvent[T])) error {
	query := "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion="
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	response, err := api.do(ctx, http.MethodGet, path+separator+query, "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("watch %s: %s", path, response.Status)
	}
	decoder := json.NewDecoder(response.Body)
	for {
		var event WatchEvent[T]
		if err := decoder.Decode(&event); err != nil {
			return fmt.Errorf("watch %s: %w", path, err)
		}
		if event.Type == "ERROR" {
			return fmt.Errorf("watch %s ended by the server", path)
		}
		handle(event)
	}
}

// Follow watches until the context ends: a watch that breaks, as it does when the API
// server restarts, is opened again after a pause.
func Follow(ctx context.Context, watch func()) {
	for ctx.Err() == nil {
		watch()
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
	}
}

// Watch reports all objects at an API path, which may have a query, as admin, then a bookmark, then every
// change, in order and as they come. It returns when the watch breaks, as it
// does when the API server restarts.
func Watch[T any](ctx context.Context, l *Lab, path string, handle func(WatchEvent[T])) error {
	return watch(ctx, l.api, path, handle)
}
