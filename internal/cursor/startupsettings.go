package cursor

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// serverConfig brings every client onto RunSSE and BidiAppend: they work over HTTP/1.1, and through
// whatever stands between (section 1.2).
func serverConfig(_ context.Context, r unaryRequest) ([]byte, error) {
	return r.message(&aiserverv1.GetServerConfigResponse{
		ConfigVersion: "1",
		Http2Config:   aiserverv1.Http2Config_HTTP2_CONFIG_FORCE_ALL_DISABLED,
	})
}

func privacyMode(_ context.Context, r unaryRequest) ([]byte, error) {
	return r.message(&aiserverv1.GetUserPrivacyModeResponse{PrivacyMode: aiserverv1.PrivacyMode_PRIVACY_MODE_NO_STORAGE})
}

func getMe(_ context.Context, r unaryRequest) ([]byte, error) {
	return r.message(&aiserverv1.GetMeResponse{AuthId: userID, UserId: 1, Email: new(userEmail)})
}

// getEmail has no published message; the second field is how somebody signed up.
func getEmail(_ context.Context, r unaryRequest) ([]byte, error) {
	return r.fields(wireField{1, "email", userEmail}, wireField{2, "signUpType", int32(3)})
}

func serverTime(_ context.Context, r unaryRequest) ([]byte, error) {
	now := float64(time.Now().UnixMilli())
	return r.fields(wireField{1, "receiveTimestamp", now}, wireField{2, "transmitTimestamp", now})
}

func healthCheck(_ context.Context, r unaryRequest) ([]byte, error) {
	if r.codec == cursorwire.JSON {
		return []byte(`{"status":"STATUS_HEALTHY"}`), nil
	}
	return r.fields(wireField{1, "status", int32(1)})
}

// echoPayload returns the payload that it was sent, which shows a client's diagnosis that nothing in between
// changes it.
func echoPayload(_ context.Context, r unaryRequest) ([]byte, error) {
	payload := strings.Join(r.part().texts(1, "payload"), "")
	if payload == "" {
		return r.fields()
	}
	return r.fields(wireField{1, "payload", payload})
}

// countTokens estimates: four bytes of what is sent are a token.
func countTokens(_ context.Context, r unaryRequest) ([]byte, error) {
	return r.fields(wireField{1, "count", int32(len(r.body) / 4)}) // at most maxUnary, so it fits
}

// gates are the switches of a client that matter to a server, by their names (section 9.3).
var gates = map[string]bool{
	"nal_agent_retries":                    true, // tries a lost run again
	"nal_fresh_retry_ids":                  true, // under an id of its own
	"use_model_parameters":                 true, // effort is a parameter of a model
	"use_react_model_picker":               true,
	"context_visualizer":                   true,
	"disable_network_change_monitor_local": true,  // gives no run up for a probe
	"disable_terminal_output_ui_streaming": false, // shows output while it comes
}

// bootstrap answers with the switches in the form that the client's library reads. What is not listed
// has the client's own default.
func bootstrap(_ context.Context, r unaryRequest) ([]byte, error) {
	now := time.Now().UnixMilli()
	on := make(map[string]any, len(gates))
	for name, value := range gates {
		on[name] = map[string]any{"name": name, "value": value, "rule_id": "roost", "secondary_exposures": []any{}}
	}
	none := struct{}{}
	config, err := json.Marshal(map[string]any{
		"feature_gates": on, "dynamic_configs": none, "layer_configs": none,
		"has_updates": true, "hash_used": "none", "time": now,
	})
	if err != nil {
		return nil, err
	}
	return r.message(&aiserverv1.BootstrapStatsigResponse{Config: string(config), GeneratedAtMs: uint64(now)})
}
