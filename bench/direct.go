package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// direct is a client of the provider with nothing in between and as little work as possible:
// what roost is compared with. It is safe for concurrent use.
type direct struct {
	url  string
	http *http.Client
}

func newDirect(base string) *direct {
	return &direct{
		url:  base + "/v1/chat/completions",
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}},
	}
}

func (d *direct) close() { d.http.CloseIdleConnections() }

// run makes one request and reads its answer.
func (d *direct) run(ctx context.Context, o order) (*turn, error) {
	body := fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":%q}]}`, modelID, o)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	t := newTurn(o)
	res, err := d.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the provider says %s", res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	for lines.Scan() {
		if string(lines.Bytes()) == "data: [DONE]" {
			return t, t.check(o)
		}
		if text := content(lines.Bytes()); text != "" {
			t.take(text, time.Now())
		}
	}
	return nil, errors.Join(lines.Err(), errors.New("the provider's answer broke off"))
}

// content returns the text of a line of the provider's answer. It has no escapes.
func content(line []byte) string {
	_, rest, ok := bytes.Cut(line, []byte(`"delta":{"content":"`))
	if !ok {
		return ""
	}
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}
