package cursor

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

type (
	availableModel = aiserverv1.AvailableModelsResponse_AvailableModel
	modelVariant   = aiserverv1.AvailableModelsResponse_ModelVariantConfig
)

// parameterEffort is the parameter of a model that says how much it shall think.
const parameterEffort = "thinking_effort"

// availableModels is the list of the IDE (section 9.2). What the request asks for does not matter:
// every model is on offer to everyone.
func (c *calls) availableModels(_ context.Context, r unaryRequest) ([]byte, error) {
	all := c.names.offers()
	reply := &aiserverv1.AvailableModelsResponse{UseModelParameters: true}
	for _, o := range all {
		reply.ModelNames = append(reply.ModelNames, o.name)
		reply.Models = append(reply.Models, c.availableModel(o))
	}
	if first, ok := c.names.standardOffer(all); ok {
		feature := &aiserverv1.AvailableModelsResponse_FeatureModelConfig{DefaultModel: first.name}
		reply.ComposerModelConfig = feature
		reply.CmdKModelConfig = feature
		reply.BackgroundComposerModelConfig = feature
		reply.PlanExecutionModelConfig = feature
		reply.SpecModelConfig = feature
		reply.DeepSearchModelConfig = feature
		reply.QuickAgentModelConfig = feature
	}
	return r.message(reply)
}

func (c *calls) availableModel(o offer) *availableModel {
	window := new(int32(min(o.model.ContextWindow, math.MaxInt32)))
	m := &availableModel{
		Name:                        o.name,
		DefaultOn:                   true,
		SupportsAgent:               new(true),
		TooltipData:                 tooltip(o),
		SupportsThinking:            new(o.model.Reasoning),
		SupportsImages:              new(o.model.Images()),
		SupportsMaxMode:             new(false),
		SupportsNonMaxMode:          new(true),
		ContextTokenLimit:           window,
		ContextTokenLimitForMaxMode: window,
		ClientDisplayName:           new(o.display),
		ServerModelName:             new(o.name),
		InputboxShortModelName:      new(o.display),
		SupportsPlanMode:            new(true),
		SupportsSandboxing:          new(true),
		SupportsCmdK:                new(false),
		IdAliases:                   o.aliases,
	}
	efforts := effortsOf(o)
	if len(efforts) > 1 {
		m.ParameterDefinitions = []*aiserverv1.ModelParameterDefinition{effortParameter(efforts)}
	}
	m.Variants = c.variants(o, efforts)
	return m
}

func tooltip(o offer) *aiserverv1.AvailableModelsResponse_TooltipData {
	return &aiserverv1.AvailableModelsResponse_TooltipData{
		PrimaryText:   o.display,
		SecondaryText: fmt.Sprintf("%s, %d tokens of context", o.model.Ref, o.model.ContextWindow),
	}
}

// effortsOf returns the efforts that make a difference to a model, in ascending order, at least one.
func effortsOf(o offer) []cursorwire.Effort {
	var efforts []cursorwire.Effort
	for _, level := range o.model.ThinkingLevels {
		if e := effortOf(level); e != cursorwire.EffortUnset && !slices.Contains(efforts, e) {
			efforts = append(efforts, e)
		}
	}
	if len(efforts) == 0 {
		return []cursorwire.Effort{cursorwire.EffortDisabled}
	}
	return efforts
}

func effortParameter(efforts []cursorwire.Effort) *aiserverv1.ModelParameterDefinition {
	values := new(aiserverv1.ModelParameterDefinition_EnumParameterDefinition)
	for _, e := range efforts {
		values.Values = append(values.Values, &aiserverv1.ModelParameterDefinition_EnumParameterDefinition_EnumParameterValue{
			Value: string(e), DisplayName: new(effortName(e)),
		})
	}
	return &aiserverv1.ModelParameterDefinition{
		Id: parameterEffort, Name: "Thinking", IsCycleableByHotkey: new(true),
		ParameterType: &aiserverv1.ModelParameterDefinition_ModelParameterType{EnumParameter: values},
	}
}

// variants returns a model's ways to be asked, one for each effort. The names of all end with an
// effort, because a client's name is split at its last colon, and a model's own id may have one.
func (c *calls) variants(o offer, efforts []cursorwire.Effort) []*modelVariant {
	standard := effortOf(session.Clamp(c.names.thinking, o.model.ThinkingLevels))
	var all []*modelVariant
	for _, e := range efforts {
		v := &modelVariant{
			DisplayName:                 o.display,
			DisplayNameOutsidePicker:    new(o.display),
			IsDefaultNonMaxConfig:       new(e == standard),
			IsDefaultMaxConfig:          new(false),
			VariantStringRepresentation: new(o.name + ":" + string(e)),
		}
		if len(efforts) > 1 {
			v.DisplayName = o.display + " " + effortName(e)
			v.DisplayNameOutsidePicker = new(v.DisplayName)
			v.ParameterValues = []*aiserverv1.RequestedModel_ModelParameterValue{{Id: parameterEffort, Value: string(e)}}
		}
		all = append(all, v)
	}
	return all
}

// effortName is an effort for people.
func effortName(e cursorwire.Effort) string {
	switch e {
	case cursorwire.EffortDisabled:
		return "Off"
	case cursorwire.EffortLow:
		return "Low"
	case cursorwire.EffortMedium:
		return "Medium"
	case cursorwire.EffortHigh:
		return "High"
	case cursorwire.EffortXHigh:
		return "Extra High"
	case cursorwire.EffortMax:
		return "Max"
	case cursorwire.EffortUnset:
		return ""
	default:
		return string(e)
	}
}

func (c *calls) defaultModel(_ context.Context, r unaryRequest) ([]byte, error) {
	o, _ := c.names.standardOffer(c.names.offers())
	return r.message(&aiserverv1.GetDefaultModelResponse{Model: o.name, ThinkingModel: o.name})
}

// usableModels and the three after it are the lists of the command line (section 9.1). The two
// services describe a model differently, but both begin with its name.
func (c *calls) usableModels(_ context.Context, r unaryRequest) ([]byte, error) {
	reply := new(aiserverv1.GetUsableModelsResponse)
	for _, o := range c.names.offers() {
		reply.Models = append(reply.Models, &aiserverv1.ModelDetails{ModelName: new(o.name)})
	}
	return r.message(reply)
}

func (c *calls) defaultModelForCLI(_ context.Context, r unaryRequest) ([]byte, error) {
	reply := new(aiserverv1.GetDefaultModelForCliResponse)
	if o, ok := c.names.standardOffer(c.names.offers()); ok {
		reply.Model = &aiserverv1.ModelDetails{ModelName: new(o.name)}
	}
	return r.message(reply)
}

func (c *calls) agentUsableModels(_ context.Context, r unaryRequest) ([]byte, error) {
	reply := new(agentv1.GetUsableModelsResponse)
	for _, o := range c.names.offers() {
		reply.Models = append(reply.Models, modelDetails(o))
	}
	return r.message(reply)
}

func (c *calls) agentDefaultModelForCLI(_ context.Context, r unaryRequest) ([]byte, error) {
	reply := new(agentv1.GetDefaultModelForCliResponse)
	if o, ok := c.names.standardOffer(c.names.offers()); ok {
		reply.Model = modelDetails(o)
	}
	return r.message(reply)
}

func modelDetails(o offer) *agentv1.ModelDetails {
	m := &agentv1.ModelDetails{
		ModelId: o.name, DisplayModelId: o.name, DisplayName: o.display, DisplayNameShort: o.display,
		Aliases: o.aliases, MaxMode: new(false),
	}
	if o.model.Reasoning {
		m.ThinkingDetails = new(agentv1.ThinkingDetails)
	}
	return m
}

// modelItems is the public list, in which the SDK looks before it asks for a model. The default is in
// it under the name that clients have for it.
func (c *calls) modelItems(w http.ResponseWriter, _ *http.Request) {
	type item struct {
		ID          string `json:"id"`
		DisplayName string `json:"displayName"`
	}
	items := []item{}
	all := c.names.offers()
	for _, o := range all {
		items = append(items, item{o.name, o.display})
	}
	if o, ok := c.names.standardOffer(all); ok {
		items = append(items, item{"default", "Default (" + o.display + ")"})
	}
	writeJSON(w, map[string]any{"items": items})
}
