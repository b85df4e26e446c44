package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// applyCRDs applies every CustomResourceDefinition in a folder and waits until
// all of them are served.
func (l *Lab) applyCRDs(ctx context.Context, folder string) error {
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
			name, err := l.applyCRD(ctx, document)
			if err != nil {
				return fmt.Errorf("apply the CRD in %s: %w", file, err)
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

func (l *Lab) applyCRD(ctx context.Context, document []byte) (string, error) {
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(document, &object); err != nil {
		return "", fmt.Errorf("parse: %w", err)
	}
	return object.Metadata.Name, l.api.apply(ctx, crdPath+object.Metadata.Name, document)
}

func (l *Lab) waitEstablished(ctx context.Context, name string) error {
	return Eventually(ctx, startTimeout, "wait until the CRD "+name+" is established", func() error {
		raw, err := l.api.get(ctx, crdPath+name)
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
