package mcptool_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

// body reads a request's question and leaves it there for the next reader.
func body(r *http.Request) (q question) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return q
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	if err := json.Unmarshal(data, &q); err != nil {
		return question{}
	}
	return q
}

func bodyMethod(r *http.Request) string { return body(r).Method }

func bodyID(r *http.Request) string { return string(body(r).ID) }
