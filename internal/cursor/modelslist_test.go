package cursor

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// The list of the IDE, whole (R22, R40). A newer client asks with fields that nobody here knows.
func TestAvailableModelsGolden(t *testing.T) {
	h := newTestCalls(t, nil)
	want, err := os.ReadFile("testdata/available_models.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{`{}`, ``, `{"isNightly":true,"includeHiddenModels":true,"scope":"AVAILABLE_MODELS_SCOPE_NEWER","x":[{"y":1}]}`} {
		w := askCall(t, h, cursorwire.JSON, aiService+"AvailableModels", []byte(request))
		var got bytes.Buffer
		if err := json.Indent(&got, w.Body.Bytes(), "", "  "); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: status %d, %v", request, w.Code, err)
		}
		if got.String()+"\n" != string(want) {
			t.Errorf("%s: the list differs from testdata/available_models.json:\n%s", request, &got)
		}
	}
	unknown := protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), "newer")
	w := askCall(t, h, cursorwire.Proto, aiService+"AvailableModels", unknown)
	got, inJSON := new(aiserverv1.AvailableModelsResponse), new(aiserverv1.AvailableModelsResponse)
	if err := cursorwire.Proto.Decode(w.Body.Bytes(), got); err != nil {
		t.Fatal(err)
	}
	if err := cursorwire.JSON.Decode(want, inJSON); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, inJSON) {
		t.Errorf("the list in protobuf is another than in JSON: %v", got)
	}
}

func TestListsOfTheCommandLine(t *testing.T) {
	h := newTestCalls(t, nil)
	want := []string{"fake/test-model", "local/small:8b", "local/vendor/shared", "fake/vendor/shared", "claude-4.5-sonnet"}
	for _, codec := range bothCodecs {
		agent, ai := new(agentv1.GetUsableModelsResponse), new(aiserverv1.GetUsableModelsResponse)
		answerCall(t, h, codec, agentService+"GetUsableModels", &agentv1.GetUsableModelsRequest{CustomModelIds: []string{"x"}}, agent)
		answerCall(t, h, codec, aiService+"GetUsableModels", new(aiserverv1.GetUsableModelsRequest), ai)
		var fromAgent, fromAI []string
		for _, m := range agent.Models {
			fromAgent = append(fromAgent, m.ModelId)
		}
		for _, m := range ai.Models {
			fromAI = append(fromAI, m.GetModelName())
		}
		if !slices.Equal(fromAgent, want) || !slices.Equal(fromAI, want) {
			t.Errorf("in %s: %v, %v", codec, fromAgent, fromAI)
		}
		first := &agentv1.ModelDetails{
			ModelId: "fake/test-model", DisplayModelId: "fake/test-model", DisplayName: "Test model", DisplayNameShort: "Test model",
			Aliases: []string{"test-model"}, ThinkingDetails: new(agentv1.ThinkingDetails), MaxMode: new(false),
		}
		if !proto.Equal(agent.Models[0], first) || agent.Models[1].ThinkingDetails != nil {
			t.Errorf("in %s: %v", codec, agent.Models[:2])
		}
	}
}

func TestDefaultModel(t *testing.T) {
	for name, tc := range map[string]struct {
		models   func() []catalog.Model
		standard session.ModelRef
		want     string
	}{
		"configured":     {offered, session.ModelRef{Provider: "local", ID: "small:8b"}, "local/small:8b"},
		"not on offer":   {offered, session.ModelRef{Provider: "local", ID: "other"}, "fake/test-model"},
		"without models": {func() []catalog.Model { return nil }, session.ModelRef{}, ""},
	} {
		h := newTestCalls(t, func(o *callsOptions) {
			o.Models, o.Default = tc.models, func() session.ModelRef { return tc.standard }
		})
		for _, codec := range bothCodecs {
			standard, list := new(aiserverv1.GetDefaultModelResponse), new(aiserverv1.AvailableModelsResponse)
			agent, ai := new(agentv1.GetDefaultModelForCliResponse), new(aiserverv1.GetDefaultModelForCliResponse)
			none := new(aiserverv1.GetDefaultModelRequest)
			answerCall(t, h, codec, aiService+"GetDefaultModel", none, standard)
			answerCall(t, h, codec, aiService+"GetDefaultModelForCli", none, ai)
			answerCall(t, h, codec, agentService+"GetDefaultModelForCli", none, agent)
			answerCall(t, h, codec, aiService+"AvailableModels", none, list)
			for i, got := range []string{
				standard.Model, standard.ThinkingModel, ai.GetModel().GetModelName(), agent.GetModel().GetModelId(),
				list.GetComposerModelConfig().GetDefaultModel(), list.GetQuickAgentModelConfig().GetDefaultModel(),
			} {
				if got != tc.want {
					t.Errorf("%s in %s, answer %d: %q, want %q", name, codec, i, got, tc.want)
				}
			}
		}
	}
}
