package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// field is a row of fields.tsv.
type field struct {
	message string
	number  int
	name    string
	typ     string // a scalar, or the full name of a message or enum
	label   string // single, optional, repeated, oneof or map
	oneof   string // its name where label is oneof
	mapKey  string // the key's type where label is map
}

// value is a row of enums.tsv.
type value struct {
	name   string
	number int
}

// rpc is a row of rpcs.tsv.
type rpc struct{ service, method, input, output, streaming string }

// tables are the facts. A message without fields is a key with an empty list.
type tables struct {
	messages map[string][]field
	enums    map[string][]value
	rpcs     map[string]rpc // by service/method
}

var headers = map[string]string{
	"fields": "message\tnumber\tname\ttype\tlabel\toneof\tmap_key\tjson_name",
	"enums":  "enum\tvalue\tnumber",
	"rpcs":   "service\tmethod\tinput\toutput\tstreaming",
}

// readTables reads every table of dir: the core ones, and where they exist those with the suffix
// _aux and the prefix spec_.
func readTables(dir string) (*tables, error) {
	t := &tables{messages: map[string][]field{}, enums: map[string][]value{}, rpcs: map[string]rpc{}}
	if _, err := os.Stat(filepath.Join(dir, "fields.tsv")); err != nil {
		return nil, err
	}
	return t, t.read(dir, "", "_aux", "spec_")
}

// read adds the tables of dir whose name is prefix+kind, or kind+suffix.
func (t *tables) read(dir string, affixes ...string) error {
	for _, affix := range affixes {
		for _, kind := range []string{"fields", "enums", "rpcs"} {
			name := affix + kind
			if strings.HasPrefix(affix, "_") {
				name = kind + affix
			}
			rows, err := readRows(filepath.Join(dir, name+".tsv"), headers[kind])
			if err != nil {
				return err
			}
			for _, row := range rows {
				if err := t.add(kind, row); err != nil {
					return fmt.Errorf("%s: %q: %w", name, row, err)
				}
			}
		}
	}
	return nil
}

// readRows returns the rows below the header; none if the file does not exist.
func readRows(path, header string) ([][]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if lines[0] != header {
		return nil, fmt.Errorf("%s: the first line is %q, want %q", path, lines[0], header)
	}
	var rows [][]string
	for _, line := range lines[1:] {
		row := strings.Split(line, "\t")
		if len(row) != strings.Count(header, "\t")+1 {
			return nil, fmt.Errorf("%s: %q has %d columns", path, line, len(row))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// add takes a row. A row that is there already, in another table, is the same row.
func (t *tables) add(kind string, row []string) error {
	switch kind {
	case "fields":
		return t.addField(row)
	case "enums":
		n, err := strconv.Atoi(row[2])
		if err != nil {
			return err
		}
		if v := (value{row[1], n}); !slices.Contains(t.enums[row[0]], v) {
			t.enums[row[0]] = append(t.enums[row[0]], v)
		}
	case "rpcs":
		t.rpcs[row[0]+"/"+row[1]] = rpc{row[0], row[1], row[2], row[3], row[4]}
	}
	return nil
}

func (t *tables) addField(row []string) error {
	f := field{message: row[0], name: row[2], typ: row[3], label: row[4], oneof: row[5], mapKey: row[6]}
	known := t.messages[f.message]
	if f.label == "empty" {
		t.messages[f.message] = known
		return nil
	}
	n, err := strconv.Atoi(row[1])
	if err != nil {
		return err
	}
	f.number = n
	if json := jsonName(f.name); json != row[7] {
		return fmt.Errorf("the JSON name is not %s: say how to print that", json)
	}
	i := slices.IndexFunc(known, func(k field) bool { return k.number == f.number || k.name == f.name })
	switch {
	case i < 0:
		t.messages[f.message] = append(known, f)
	case known[i] != f:
		return fmt.Errorf("contradicts %v", known[i])
	}
	return nil
}

// jsonName is the name that protobuf derives for JSON.
func jsonName(name string) string {
	var b strings.Builder
	upper := false
	for _, r := range name {
		switch {
		case r == '_':
			upper = true
		case upper:
			b.WriteString(strings.ToUpper(string(r)))
			upper = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// writeNeeded writes the rows of the tables in from that s needs, core before _aux.
func writeNeeded(facts, from string, s *schema) error {
	needed := map[string]func(row []string) bool{
		"fields": func(row []string) bool { _, ok := s.messages[row[0]]; return ok },
		"enums":  func(row []string) bool { _, ok := s.enums[row[0]]; return ok },
		"rpcs": func(row []string) bool {
			return slices.ContainsFunc(s.rpcs, func(r rpc) bool { return r.service == row[0] && r.method == row[1] })
		},
	}
	for kind, header := range headers {
		text := []string{header}
		for _, suffix := range []string{"", "_aux"} {
			rows, err := readRows(filepath.Join(from, kind+suffix+".tsv"), header)
			if err != nil {
				return err
			}
			for _, row := range rows {
				if line := strings.Join(row, "\t"); needed[kind](row) && !slices.Contains(text, line) {
					text = append(text, line)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(facts, kind+".tsv"), []byte(strings.Join(text, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}
