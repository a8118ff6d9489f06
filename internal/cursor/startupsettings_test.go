package cursor

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

var bothCodecs = []cursorwire.Codec{cursorwire.Proto, cursorwire.JSON}

func TestSettings(t *testing.T) {
	h := newTestCalls(t, nil)
	none := new(aiserverv1.GetServerConfigRequest)
	for _, codec := range bothCodecs {
		for path, want := range map[string]proto.Message{
			"/aiserver.v1.ServerConfigService/GetServerConfig": &aiserverv1.GetServerConfigResponse{ConfigVersion: "1", Http2Config: 1},
			aiService + "GetServerConfig":                      &aiserverv1.GetServerConfigResponse{ConfigVersion: "1", Http2Config: 1},
			dashboardService + "GetUserPrivacyMode":            &aiserverv1.GetUserPrivacyModeResponse{PrivacyMode: 1},
			dashboardService + "GetMe":                         &aiserverv1.GetMeResponse{AuthId: "roost", UserId: 1, Email: new("roost@localhost")},
		} {
			got := want.ProtoReflect().New().Interface()
			answerCall(t, h, codec, path, none, got)
			if !proto.Equal(got, want) {
				t.Errorf("%s in %s: %v", path, codec, got)
			}
		}
	}
}

// The answers that are written by hand, byte by byte.
func TestSmallAnswers(t *testing.T) {
	h := newTestCalls(t, nil)
	for _, tc := range []struct {
		path, request, reply       string // protobuf
		requestInJSON, replyInJSON string
	}{
		{aiService + "HealthCheck", "", "\x08\x01", "{}", `{"status":"STATUS_HEALTHY"}`},
		{healthService + "Ping", "\n\x02hi", "\n\x02hi", `{"payload":"hi"}`, `{"payload":"hi"}`},
		{healthService + "Ping", "\n\x02hi\x10\x01", "\n\x02hi", `{"payload":"hi","simulateError":true}`, `{"payload":"hi"}`},
		{healthService + "Unary", "", "", "", `{}`},
		{healthService + "Ping", "\x08\x01\n", "", `{"payload":7}`, `{}`},
		{aiService + "CountTokens", "\n\x062\x04text", "\x08\x02", `{"contextItems":[]}`, `{"count":4}`},
		{"/aiserver.v1.AuthService/GetEmail", "", "\n\x0froost@localhost\x10\x03", "{}", `{"email":"roost@localhost","signUpType":3}`},
	} {
		if w := askCall(t, h, cursorwire.Proto, tc.path, []byte(tc.request)); w.Body.String() != tc.reply {
			t.Errorf("%s %q: %q, want %q", tc.path, tc.request, w.Body, tc.reply)
		}
		if w := askCall(t, h, cursorwire.JSON, tc.path, []byte(tc.requestInJSON)); w.Body.String() != tc.replyInJSON {
			t.Errorf("%s %s: %s, want %s", tc.path, tc.requestInJSON, w.Body, tc.replyInJSON)
		}
	}
}

func TestServerTime(t *testing.T) {
	h := newTestCalls(t, nil)
	before := float64(time.Now().UnixMilli())
	var inJSON struct{ ReceiveTimestamp, TransmitTimestamp float64 }
	if err := json.Unmarshal(askCall(t, h, cursorwire.JSON, aiService+"ServerTime", nil).Body.Bytes(), &inJSON); err != nil {
		t.Fatal(err)
	}
	data := askCall(t, h, cursorwire.Proto, aiService+"ServerTime", nil).Body.Bytes()
	after := float64(time.Now().UnixMilli())
	times := []float64{inJSON.ReceiveTimestamp, inJSON.TransmitTimestamp}
	for want := protowire.Number(1); want <= 2; want++ {
		n, _, head := protowire.ConsumeTag(data)
		bits, size := protowire.ConsumeFixed64(data[head:])
		if n != want || size < 0 {
			t.Fatalf("field %d: %x", want, data)
		}
		times = append(times, math.Float64frombits(bits))
		data = data[head+size:]
	}
	for _, at := range times {
		if at < before || at > after {
			t.Errorf("%f is not between %f and %f", at, before, after)
		}
	}
}

// The library of the clients reads these keys, and nothing without them.
func TestBootstrap(t *testing.T) {
	h := newTestCalls(t, nil)
	for _, codec := range bothCodecs {
		reply := new(aiserverv1.BootstrapStatsigResponse)
		answerCall(t, h, codec, analyticsService+"BootstrapStatsig", new(aiserverv1.BootstrapStatsigRequest), reply)
		var config struct {
			FeatureGates map[string]struct {
				Name               string
				Value              bool
				RuleID             string `json:"rule_id"`
				SecondaryExposures []any  `json:"secondary_exposures"`
			} `json:"feature_gates"`
			DynamicConfigs map[string]any `json:"dynamic_configs"`
			LayerConfigs   map[string]any `json:"layer_configs"`
			HasUpdates     bool           `json:"has_updates"`
			HashUsed       string         `json:"hash_used"`
			Time           uint64
		}
		if err := json.Unmarshal([]byte(reply.Config), &config); err != nil {
			t.Fatal(err)
		}
		if config.DynamicConfigs == nil || config.LayerConfigs == nil || !config.HasUpdates || config.HashUsed != "none" || config.Time != reply.GeneratedAtMs || config.Time == 0 {
			t.Errorf("in %s: %s", codec, reply.Config)
		}
		for name, want := range map[string]bool{"nal_agent_retries": true, "use_model_parameters": true, "disable_terminal_output_ui_streaming": false} {
			gate, ok := config.FeatureGates[name]
			if !ok || gate.Name != name || gate.Value != want || gate.RuleID == "" || gate.SecondaryExposures == nil {
				t.Errorf("gate %s: %+v", name, gate)
			}
		}
	}
}
