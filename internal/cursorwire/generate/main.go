// Command generate writes the .proto files of Cursor's agent protocol from tables of facts: field
// numbers, types and names, one row each.
//
//	facts/*.tsv ─┐
//	             ├─▶ choose ─▶ print ─▶ proto/agent/v1, proto/aiserver/v1 ─▶ scripts/generate
//	selection.txt┘
//
// The tables hold the messages that selection.txt reaches; what it cuts stays an unknown field,
// which survives a round trip. It runs in the root of the repository:
//
//	go run ./internal/cursorwire/generate             writes the .proto files
//	go run ./internal/cursorwire/generate -from DIR   takes the rows that are needed from the full tables in DIR first
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

const here = "internal/cursorwire/generate"

func main() {
	from := flag.String("from", "", "directory of full tables from which facts/ is renewed first")
	flag.Parse()
	if err := run(".", *from); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(root, from string) error {
	sel, err := readSelection(filepath.Join(root, here, "selection.txt"))
	if err != nil {
		return err
	}
	facts := filepath.Join(root, here, "facts")
	if from != "" {
		if err := renew(facts, from, sel); err != nil {
			return err
		}
	}
	files, err := generate(facts, sel)
	if err != nil {
		return err
	}
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the text of each file by its path in the repository.
func generate(facts string, sel selection) (map[string]string, error) {
	t, err := readTables(facts)
	if err != nil {
		return nil, err
	}
	s, err := choose(t, sel)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"proto/agent/v1/agent.proto":       printFile(s, "agent.v1"),
		"proto/aiserver/v1/aiserver.proto": printFile(s, "aiserver.v1"),
	}, nil
}

// renew replaces fields.tsv, enums.tsv and rpcs.tsv in facts by the rows of the tables in from that
// are needed. What the tables lack (spec_*.tsv) is kept as it is.
func renew(facts, from string, sel selection) error {
	t, err := readTables(from)
	if err != nil {
		return err
	}
	if err := t.read(facts, "spec_"); err != nil {
		return err
	}
	s, err := choose(t, sel)
	if err != nil {
		return err
	}
	return writeNeeded(facts, from, s)
}
