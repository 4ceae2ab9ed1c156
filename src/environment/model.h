/* The struct behind sgm_model. model.c makes models of layers and trains them, model_table.c loads them and
 * predicts for rows of tables. Internal to src/environment. */
#ifndef SGM_ENVIRONMENT_MODEL_H
#define SGM_ENVIRONMENT_MODEL_H

#include "environment/environment.h"

/* `layers` belongs to the model until the first training hands it to the network, and is NULL afterwards. */
struct sgm_model {
    sgm_env *env;
    sgm_layer *layers;
    sgm_trainer *trainer;
    int64_t epochs; /* of all finished trainings: the next one goes on from here */
    bool int8;      /* predictions multiply integers of 8 bits */
};

/* A model of the environment; takes the layers, also on failure, which is NULL. */
sgm_model *sgm__model_create(sgm_env *env, sgm_layer *layers);
/* Gives the model a trainer without a network. */
sgm_status sgm__model_create_trainer(sgm_model *model);
/* Fails if the model cannot predict yet. */
sgm_status sgm__model_check_trained(const sgm_model *model);
/* The same, and has the trainer predict as a model does that is not training. */
sgm_status sgm__model_infer(sgm_model *model);

#endif
