package lab

// The parts of Kubernetes objects that the service proxy reads.

type metadata struct {
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	Generation        int64             `json:"generation"`
	Namespace         string            `json:"namespace"`
	Labels            map[string]string `json:"labels"`
	CreationTimestamp string            `json:"creationTimestamp"`
	DeletionTimestamp string            `json:"deletionTimestamp"`
	ResourceVersion   string            `json:"resourceVersion"`
}

type service struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		ClusterIP                string            `json:"clusterIP"`
		Selector                 map[string]string `json:"selector"`
		Ports                    []servicePort     `json:"ports"`
		PublishNotReadyAddresses bool              `json:"publishNotReadyAddresses"`
	} `json:"spec"`
}

type servicePort struct {
	Name string `json:"name"`
	Port int    `json:"port"`
	// TargetPort is a number, a container port's name, or nil for Port.
	TargetPort any `json:"targetPort"`
}

type pod struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Containers []struct {
			Ports []struct {
				Name          string `json:"name"`
				ContainerPort int    `json:"containerPort"`
			} `json:"ports"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		PodIP      string `json:"podIP"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

type node struct {
	Metadata metadata `json:"metadata"`
	Status   struct {
		Allocatable map[string]string `json:"allocatable"`
		Addresses   []struct {
			Address string `json:"address"`
		} `json:"addresses"`
		DaemonEndpoints struct {
			KubeletEndpoint struct {
				Port int `json:"Port"`
			} `json:"kubeletEndpoint"`
		} `json:"daemonEndpoints"`
	} `json:"status"`
}

func (p pod) ready() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && p.Metadata.DeletionTimestamp == ""
		}
	}
	return false
}

// live is true while the pod's processes may still answer.
func (p pod) live() bool {
	return p.Status.PodIP != "" && p.Status.Phase != "Succeeded" && p.Status.Phase != "Failed"
}

func (s service) selects(p pod) bool {
	if len(s.Spec.Selector) == 0 || s.Metadata.Namespace != p.Metadata.Namespace {
		return false
	}
	for key, value := range s.Spec.Selector {
		if p.Metadata.Labels[key] != value {
			return false
		}
	}
	return true
}
