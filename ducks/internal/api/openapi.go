package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Description is where the API says what can be asked: a document of OpenAPI 3.1. Source:
// spec.openapis.org/oas/v3.1.0.
const Description = "/api/v1/openapi.json"

// object is one of JSON.
type object map[string]any

// describe returns the document of some routes. Their bodies are described from the types that they
// are read into.
func describe(list []route) object {
	paths, schemas := object{}, object{}
	for _, r := range list {
		method, path, _ := strings.Cut(r.pattern, " ")
		of, _ := paths[path].(object)
		if of == nil {
			of = object{}
			paths[path] = of
		}
		of[strings.ToLower(method)] = r.operation(path, schemas)
	}
	schemas["Error"] = object{
		"type": "object", "properties": object{"error": object{"type": "string"}},
		"required": []string{"error"}}
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "ducks", "version": "1",
			"description": "Rooms of machines without disks."},
		"paths": paths,
		"components": object{
			"schemas":         schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
		"security": []object{{"token": []string{}}},
	}
}

func content(kind string, schema object) object {
	return object{"content": object{kind: object{"schema": schema}}}
}

const (
	kindJSON  = "application/json"
	kindImage = "application/octet-stream"
)

// operation describes a route.
func (r *route) operation(path string, schemas object) object {
	answer := object{}
	switch {
	case r.out == nil:
		answer = content(kindImage, object{"type": "string", "format": "binary"})
	case r.out != reflect.TypeFor[none]():
		answer = content(kindJSON, schemaOf(r.out, schemas))
	}
	answer["description"] = "It is done."
	refusal := content(kindJSON, object{"$ref": "#/components/schemas/Error"})
	refusal["description"] = "It is not done, and why."
	o := object{"summary": r.text, "responses": object{"200": answer, "default": refusal}}
	if r.role == "" {
		o["security"] = []object{}
	} else {
		o["description"] = "It needs role " + string(r.role) + "."
	}
	if r.in != nil {
		o["requestBody"] = with(content(kindJSON, schemaOf(r.in, schemas)), "required", true)
	}
	if r.image {
		o["requestBody"] = with(content(kindImage, object{"type": "string", "format": "binary"}),
			"required", true)
	}
	var parameters []object
	for part := range strings.SplitSeq(path, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			parameters = append(parameters, object{"name": strings.TrimSuffix(name, "}"), "in": "path",
				"required": true, "schema": object{"type": "string"}})
		}
	}
	for _, name := range r.query {
		parameters = append(parameters,
			object{"name": name, "in": "query", "schema": object{"type": "string"}})
	}
	if parameters != nil {
		o["parameters"] = parameters
	}
	return o
}

func with(o object, key string, value any) object {
	o[key] = value
	return o
}

// schemaOf describes a type. Structs get a place in schemas.
func schemaOf(t reflect.Type, schemas object) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Kind() != reflect.Pointer &&
		t.Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()):
		return object{"type": "string"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return object{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), schemas)
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem(), schemas)}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Struct:
		if _, is := schemas[t.Name()]; !is {
			schemas[t.Name()] = object{} // for those that hold themselves
			schemas[t.Name()] = structure(t, schemas)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	}
	return object{"type": "integer"}
}

// structure describes the fields of a struct, and of those that it embeds.
func structure(t reflect.Type, schemas object) object {
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		tag, tagged := f.Tag.Lookup("json")
		name, rest, _ := strings.Cut(tag, ",")
		if !tagged || !f.IsExported() || name == "-" || name == "" {
			continue
		}
		properties[name] = schemaOf(f.Type, schemas)
		if rest == "" {
			required = append(required, name)
		}
	}
	o := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}
