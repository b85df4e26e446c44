package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// createCRDs creates every CustomResourceDefinition in a folder and waits until
// all of them are served. They are created, not applied: a lab's etcd is
// always a new one, and server-side apply of a megabyte takes seconds.
func (l *Lab) createCRDs(ctx context.Context, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("no CRDs in %s", folder), err)
	}
	var names []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read CRDs: %w", err)
		}
		for _, document := range documents(content) {
			name, err := l.createCRD(ctx, document)
			if err != nil {
				return fmt.Errorf("create the CRD in %s: %w", file, err)
			}
			names = append(names, name)
		}
	}
	for _, name := range names {
		if err := l.waitEstablished(ctx, name); err != nil {
			return err
		}
	}
	l.say.step("%d CRDs are established (%s, ...)", len(names), names[0])
	return nil
}

// createCRD sends JSON: the API server takes seconds to read these megabytes
// of YAML, and we do not.
func (l *Lab) createCRD(ctx context.Context, document []byte) (string, error) {
	object, err := yaml.YAMLToJSON(document)
	if err != nil {
		return "", fmt.Errorf("parse: %w", err)
	}
	var named struct {
		Metadata metadata `json:"metadata"`
	}
	if err := json.Unmarshal(object, &named); err != nil {
		return "", fmt.Errorf("find its name: %w", err)
	}
	_, err = l.api.call(ctx, http.MethodPost, crdPath, "application/json", object)
	return named.Metadata.Name, err
}

func (l *Lab) waitEstablished(ctx context.Context, name string) error {
	return Eventually(ctx, startTimeout, "wait until the CRD "+name+" is established", func() error {
		raw, err := l.api.get(ctx, crdPath+"/"+name)
		if err != nil {
			return err
		}
		return condition(raw, "Established")
	})
}

// condition is nil if the object's status has the condition at True.
func condition(raw []byte, kind string) error {
	var object struct {
		Status struct {
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return fmt.Errorf("read conditions: %w", err)
	}
	for _, c := range object.Status.Conditions {
		if c.Type == kind && c.Status == "True" {
			return nil
		}
		if c.Type == kind {
			return fmt.Errorf("condition %s is %s: %s %s", kind, c.Status, c.Reason, c.Message)
		}
	}
	return fmt.Errorf("condition %s is not there yet", kind)
}

// documents splits a YAML stream, leaving out empty documents.
func documents(stream []byte) [][]byte {
	var out [][]byte
	for _, document := range bytes.Split(append([]byte("\n"), stream...), []byte("\n---")) {
		if hasContent(document) {
			out = append(out, document)
		}
	}
	return out
}

func hasContent(document []byte) bool {
	for line := range bytes.Lines(document) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}
